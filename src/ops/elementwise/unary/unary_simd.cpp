#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/unary/unary_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/elementwise.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/common/strides.h"
#include "ops/elementwise/unary/activation_simd-inl.h"
#include "ops/elementwise/unary/kernels.h"
#include "ops/elementwise/unary/unary.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

/// Calls run(f), f being the vector form of the function; false when it has none.
template <class Run>
HWY_INLINE bool with_function(const UnaryParams& p, Run run) {
  const float a = p.a;
  const float b = p.b;
  switch (p.function) {
    case UnaryFunction::kAbs: run([](auto, auto x) HWY_ATTR { return hn::Abs(x); }); return true;
    case UnaryFunction::kNeg: run([](auto, auto x) HWY_ATTR { return hn::Neg(x); }); return true;
    case UnaryFunction::kExp: run([](auto d, auto x) HWY_ATTR { return exp_f32(d, x); }); return true;
    case UnaryFunction::kLog: run([](auto d, auto x) HWY_ATTR { return log_f32(d, x); }); return true;
    case UnaryFunction::kSqrt: run([](auto, auto x) HWY_ATTR { return hn::Sqrt(x); }); return true;
    case UnaryFunction::kRsqrt:
      run([](auto d, auto x) HWY_ATTR { return hn::Div(hn::Set(d, 1.0F), hn::Sqrt(x)); });
      return true;
    case UnaryFunction::kReciprocal:
      run([](auto d, auto x) HWY_ATTR { return hn::Div(hn::Set(d, 1.0F), x); });
      return true;
    case UnaryFunction::kSquare: run([](auto, auto x) HWY_ATTR { return hn::Mul(x, x); }); return true;
    case UnaryFunction::kFloor: run([](auto, auto x) HWY_ATTR { return hn::Floor(x); }); return true;
    case UnaryFunction::kCeil: run([](auto, auto x) HWY_ATTR { return hn::Ceil(x); }); return true;
    case UnaryFunction::kRound: run([](auto, auto x) HWY_ATTR { return hn::Round(x); }); return true;
    case UnaryFunction::kTanh: run([](auto d, auto x) HWY_ATTR { return tanh_f32(d, x); }); return true;
    case UnaryFunction::kErf: run([](auto d, auto x) HWY_ATTR { return erf_f32(d, x); }); return true;
    case UnaryFunction::kSigmoid: run([](auto d, auto x) HWY_ATTR { return sigmoid_f32(d, x); }); return true;
    case UnaryFunction::kRelu: run([](auto d, auto x) HWY_ATTR { return relu_f32(d, x); }); return true;
    case UnaryFunction::kClip:
      run([a, b](auto d, auto x) HWY_ATTR { return clip_f32(d, x, hn::Set(d, a), hn::Set(d, b)); });
      return true;
    case UnaryFunction::kLeakyRelu:
      run([a](auto d, auto x) HWY_ATTR { return leaky_relu_f32(d, x, hn::Set(d, a)); });
      return true;
    case UnaryFunction::kElu: run([a](auto d, auto x) HWY_ATTR { return elu_f32(d, x, hn::Set(d, a)); }); return true;
    case UnaryFunction::kSelu:
      run([a, b](auto d, auto x) HWY_ATTR { return hn::Mul(hn::Set(d, b), elu_f32(d, x, hn::Set(d, a))); });
      return true;
    case UnaryFunction::kSoftplus: run([](auto d, auto x) HWY_ATTR { return softplus_f32(d, x); }); return true;
    case UnaryFunction::kSoftsign:
      run([](auto d, auto x) HWY_ATTR { return hn::Div(x, hn::Add(hn::Set(d, 1.0F), hn::Abs(x))); });
      return true;
    case UnaryFunction::kHardSigmoid:
      run([a, b](auto d, auto x) HWY_ATTR { return hard_sigmoid_f32(d, x, hn::Set(d, a), hn::Set(d, b)); });
      return true;
    case UnaryFunction::kHardSwish: run([](auto d, auto x) HWY_ATTR { return hard_swish_f32(d, x); }); return true;
    case UnaryFunction::kMish: run([](auto d, auto x) HWY_ATTR { return mish_f32(d, x); }); return true;
    case UnaryFunction::kGelu: run([](auto d, auto x) HWY_ATTR { return gelu_f32(d, x); }); return true;
    case UnaryFunction::kGeluTanh: run([](auto d, auto x) HWY_ATTR { return gelu_tanh_f32(d, x); }); return true;
    case UnaryFunction::kSilu: run([](auto d, auto x) HWY_ATTR { return hn::Mul(x, sigmoid_f32(d, x)); }); return true;
    case UnaryFunction::kThresholdedRelu:
      run([a](auto d, auto x) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(x, hn::Set(d, a)), x); });
      return true;
    default: return false;
  }
}

void run_unary(const Invocation& invocation, const StridedRows<2>& rows) {
  auto* y = invocation.output<float>();
  const auto* x = invocation.input<float>(0);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain,
                  [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
                    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
                      with_function(invocation.as<UnaryParams>(), [&](auto f) HWY_ATTR {
                        map_row(static_cast<std::size_t>(n), y + offsets[0], f, x + offsets[1]);
                      });
                    });
                  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_unary);

bool supports_unary_f32_simd(const OpCall& call) {
  if (call.in(0).type != ElementType::kF32 || call.out().type != ElementType::kF32) return false;
  switch (call.as<UnaryParams>().function) {
    case UnaryFunction::kIdentity:
    case UnaryFunction::kSign:
    case UnaryFunction::kSin:
    case UnaryFunction::kCos:
    case UnaryFunction::kTan:
    case UnaryFunction::kAsin:
    case UnaryFunction::kAcos:
    case UnaryFunction::kAtan:
    case UnaryFunction::kSinh:
    case UnaryFunction::kCosh:
    case UnaryFunction::kAsinh:
    case UnaryFunction::kAcosh:
    case UnaryFunction::kAtanh:
    case UnaryFunction::kCelu: return false;
    default: return make_rows<2>(call.out(), {&call.out(), &call.in(0)}).all_contiguous();
  }
}

Status run_unary_f32_simd(const Invocation& invocation) {
  const auto rows = make_rows<2>(invocation.out(), {&invocation.out(), &invocation.in(0)});
  HWY_DYNAMIC_DISPATCH(run_unary)(invocation, rows);
  return ok_status();
}

}  // namespace bantam::ops
#endif
