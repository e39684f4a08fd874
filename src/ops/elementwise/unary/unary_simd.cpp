#include <cstdint>
#include <limits>

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
#include "ops/elementwise/unary/trigonometric_simd-inl.h"
#include "ops/elementwise/unary/unary.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int kAtOnce = 4;  ///< vectors: each step of a function waits for the one before

V quiet_nan(D d) { return hn::Set(d, std::numeric_limits<float>::quiet_NaN()); }

/// f(x), a function that is right up to kLargestAngle, of any angles. A result does not depend on the other lanes.
template <class F>
HWY_INLINE V of_angles(F f, UnaryFunction function, V x) {
  const D d;
  const auto large = hn::Gt(hn::Abs(x), hn::Set(d, kLargestAngle));
  const V y = f(d, x);
  if (HWY_LIKELY(hn::AllFalse(d, large))) return y;
  HWY_ALIGN float each[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, each);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) each[i] = apply_unary(each[i], function, 0.0F, 0.0F);
  return hn::IfThenElse(large, hn::Load(d, each), y);
}

V sign_f32(D d, V x) {
  const V one = hn::CopySign(hn::Set(d, 1.0F), x);
  const auto number = hn::Gt(hn::Abs(x), hn::Zero(d));
  return hn::IfThenElse(number, one, x);  // zeros and NaN stay
}

/// Calls run(f), f being the form for several vectors of one of the functions that are made of e^x; false for others.
template <class Run>
HWY_INLINE bool with_exponential(const UnaryParams& p, Run run) {
  // Numbers are captured, not vectors: the compiler's own constructors know nothing of the instruction set.
  const float a = p.a;
  const float b = p.b;
  switch (p.function) {
    case UnaryFunction::kExp: run([](D d, const auto& x) HWY_ATTR { return exp_f32(d, x); }); return true;
    case UnaryFunction::kTanh: run([](D d, const auto& x) HWY_ATTR { return tanh_f32(d, x); }); return true;
    case UnaryFunction::kErf: run([](D d, const auto& x) HWY_ATTR { return erf_f32(d, x); }); return true;
    case UnaryFunction::kSigmoid: run([](D d, const auto& x) HWY_ATTR { return sigmoid_f32(d, x); }); return true;
    case UnaryFunction::kSilu: run([](D d, const auto& x) HWY_ATTR { return silu_f32(d, x); }); return true;
    case UnaryFunction::kGeluTanh: run([](D d, const auto& x) HWY_ATTR { return gelu_tanh_f32(d, x); }); return true;
    case UnaryFunction::kElu:
      run([a](D d, const auto& x) HWY_ATTR { return elu_f32(d, x, hn::Set(d, a)); });
      return true;
    case UnaryFunction::kCelu:
      run([a](D d, const auto& x) HWY_ATTR { return celu_f32(d, x, hn::Set(d, a)); });
      return true;
    case UnaryFunction::kSelu:
      run([a, b](D d, const auto& x) HWY_ATTR {
        auto y = elu_f32(d, x, hn::Set(d, a));
        y.set([&](auto i) HWY_ATTR { return hn::Mul(hn::Set(d, b), y.v[i]); });
        return y;
      });
      return true;
    default: return false;
  }
}

/// The same for trigonometric and hyperbolic functions, f being the form for one vector.
template <class Run>
HWY_INLINE bool with_trigonometric(UnaryFunction function, Run run) {
  switch (function) {
    case UnaryFunction::kSin:
      run([function](D, V x)
              HWY_ATTR { return of_angles([](D d, V angle) HWY_ATTR { return sin_f32(d, angle); }, function, x); });
      return true;
    case UnaryFunction::kCos:
      run([function](D, V x)
              HWY_ATTR { return of_angles([](D d, V angle) HWY_ATTR { return cos_f32(d, angle); }, function, x); });
      return true;
    case UnaryFunction::kTan:
      run([function](D, V x)
              HWY_ATTR { return of_angles([](D d, V angle) HWY_ATTR { return tan_f32(d, angle); }, function, x); });
      return true;
    case UnaryFunction::kAsin: run([](D d, V x) HWY_ATTR { return asin_f32(d, x); }); return true;
    case UnaryFunction::kAcos: run([](D d, V x) HWY_ATTR { return acos_f32(d, x); }); return true;
    case UnaryFunction::kAtan: run([](D d, V x) HWY_ATTR { return atan_f32(d, x); }); return true;
    case UnaryFunction::kSinh: run([](D d, V x) HWY_ATTR { return sinh_f32(d, x); }); return true;
    case UnaryFunction::kCosh: run([](D d, V x) HWY_ATTR { return cosh_f32(d, x); }); return true;
    case UnaryFunction::kAsinh: run([](D d, V x) HWY_ATTR { return asinh_f32(d, x); }); return true;
    case UnaryFunction::kAcosh: run([](D d, V x) HWY_ATTR { return acosh_f32(d, x); }); return true;
    case UnaryFunction::kAtanh: run([](D d, V x) HWY_ATTR { return atanh_f32(d, x); }); return true;
    default: return false;
  }
}

/// The same for all others.
template <class Run>
HWY_INLINE void with_simple(const UnaryParams& p, Run run) {
  const float a = p.a;
  const float b = p.b;
  switch (p.function) {
    case UnaryFunction::kAbs: return run([](D, V x) HWY_ATTR { return hn::Abs(x); });
    case UnaryFunction::kNeg: return run([](D, V x) HWY_ATTR { return hn::Neg(x); });
    case UnaryFunction::kSign: return run([](D d, V x) HWY_ATTR { return sign_f32(d, x); });
    case UnaryFunction::kLog: return run([](D d, V x) HWY_ATTR { return log_f32(d, x); });
    case UnaryFunction::kSqrt: return run([](D, V x) HWY_ATTR { return hn::Sqrt(x); });
    case UnaryFunction::kRsqrt: return run([](D d, V x) HWY_ATTR { return hn::Div(hn::Set(d, 1.0F), hn::Sqrt(x)); });
    case UnaryFunction::kReciprocal: return run([](D d, V x) HWY_ATTR { return hn::Div(hn::Set(d, 1.0F), x); });
    case UnaryFunction::kSquare: return run([](D, V x) HWY_ATTR { return hn::Mul(x, x); });
    case UnaryFunction::kFloor: return run([](D, V x) HWY_ATTR { return hn::Floor(x); });
    case UnaryFunction::kCeil: return run([](D, V x) HWY_ATTR { return hn::Ceil(x); });
    case UnaryFunction::kRound: return run([](D, V x) HWY_ATTR { return hn::Round(x); });
    case UnaryFunction::kRelu: return run([](D d, V x) HWY_ATTR { return relu_f32(d, x); });
    case UnaryFunction::kClip:
      return run([a, b](D d, V x) HWY_ATTR { return clip_f32(d, x, hn::Set(d, a), hn::Set(d, b)); });
    case UnaryFunction::kLeakyRelu: return run([a](D d, V x) HWY_ATTR { return leaky_relu_f32(d, x, hn::Set(d, a)); });
    case UnaryFunction::kSoftplus: return run([](D d, V x) HWY_ATTR { return softplus_f32(d, x); });
    case UnaryFunction::kSoftsign:
      return run([](D d, V x) HWY_ATTR { return hn::Div(x, hn::Add(hn::Set(d, 1.0F), hn::Abs(x))); });
    case UnaryFunction::kHardSigmoid:
      return run([a, b](D d, V x) HWY_ATTR { return hard_sigmoid_f32(d, x, hn::Set(d, a), hn::Set(d, b)); });
    case UnaryFunction::kHardSwish: return run([](D d, V x) HWY_ATTR { return hard_swish_f32(d, x); });
    case UnaryFunction::kGelu: return run([](D d, V x) HWY_ATTR { return gelu_f32(d, x); });
    case UnaryFunction::kMish: return run([](D d, V x) HWY_ATTR { return mish_f32(d, x); });
    case UnaryFunction::kThresholdedRelu:
      return run([a](D d, V x) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(x, hn::Set(d, a)), x); });
    default: return;
  }
}

/// Calls run(f), f being the form of the function for several vectors.
template <class Run>
HWY_INLINE void with_function(const UnaryParams& p, Run run) {
  const auto each = [&](auto f) HWY_ATTR { run(EachVector<decltype(f)>{f}); };
  if (!with_exponential(p, run) && !with_trigonometric(p.function, each)) with_simple(p, each);
}

/// y[i] = f(x[i]), y possibly being x.
template <class F>
HWY_INLINE void map_vectors(std::size_t n, float* y, F f, const float* x) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + kAtOnce * lanes <= n; i += kAtOnce * lanes) {
    Lockstep<kAtOnce, V> v;
    v.set([&](auto k) HWY_ATTR { return hn::LoadU(d, x + i + k * lanes); });
    v = f(d, v);
    unroll<kAtOnce>([&](auto k) HWY_ATTR { hn::StoreU(v.v[k], d, y + i + k * lanes); });
  }
  map_row(
      n - i, y + i, [&](D, V v) HWY_ATTR { return f(d, Lockstep<1, V>(v)).v[0]; }, x + i);
}

/// Does the function take longer than to move its numbers elsewhere and back?
constexpr bool takes_long(UnaryFunction function) {
  switch (function) {
    case UnaryFunction::kAbs:
    case UnaryFunction::kNeg:
    case UnaryFunction::kSign:
    case UnaryFunction::kSqrt:
    case UnaryFunction::kRsqrt:
    case UnaryFunction::kReciprocal:
    case UnaryFunction::kSquare:
    case UnaryFunction::kFloor:
    case UnaryFunction::kCeil:
    case UnaryFunction::kRound:
    case UnaryFunction::kRelu:
    case UnaryFunction::kClip:
    case UnaryFunction::kLeakyRelu:
    case UnaryFunction::kSoftsign:
    case UnaryFunction::kHardSigmoid:
    case UnaryFunction::kHardSwish:
    case UnaryFunction::kThresholdedRelu: return false;
    default: return true;
  }
}

/// Rows of n elements.
struct Rows {
  std::int64_t count;
  std::int64_t n;
};

/// Rows that lie from_step elements apart in x and to_step in y.
template <class F>
HWY_NOINLINE void map_each_row(Rows rows, float* y, std::int64_t to_step, F f, const float* x, std::int64_t from_step) {
  for (; rows.count > 0; --rows.count, y += to_step, x += from_step)
    map_vectors(static_cast<std::size_t>(rows.n), y, f, x);
}

/// Copies rows of n <= Lanes(D()) elements that lie `step` apart to where they follow each other, behind which there is
/// room for a vector.
HWY_INLINE void gather_rows(const Rows& rows, const float* from, std::int64_t step, float* to) {
  const D d;
  for (std::int64_t row = 0; row < rows.count; ++row, from += step, to += rows.n)
    hn::StoreU(load_partial(d, from, static_cast<std::size_t>(rows.n)), d, to);
}

/// The other way round.
HWY_INLINE void scatter_rows(const Rows& rows, const float* from, float* to, std::int64_t step) {
  const D d;
  for (std::int64_t row = 0; row < rows.count; ++row, from += rows.n, to += step)
    store_partial(hn::LoadU(d, from), d, to, static_cast<std::size_t>(rows.n));
}

/// map_each_row of such rows, as one row of all their elements.
template <class F>
HWY_INLINE void map_short_rows(Rows rows, float* y, std::int64_t to_step, F f, const float* x, std::int64_t from_step) {
  constexpr std::int64_t kRoom = 1024;
  HWY_ALIGN float packed[kRoom + HWY_MAX_BYTES / sizeof(float)];
  const std::int64_t most = kRoom / rows.n;
  for (std::int64_t left = rows.count; left > 0; left -= rows.count) {
    rows.count = std::min(left, most);
    if (from_step != rows.n) gather_rows(rows, x, from_step, packed);
    map_each_row({1, rows.count * rows.n}, to_step != rows.n ? packed : y, 0, f, from_step != rows.n ? packed : x, 0);
    if (to_step != rows.n) scatter_rows(rows, packed, y, to_step);
    x += rows.count * from_step;
    y += rows.count * to_step;
  }
}

void run_unary(const Invocation& invocation, const StridedRows<2>& rows) {
  const bool packs = takes_long(invocation.as<UnaryParams>().function);
  auto* y = invocation.output<float>();
  const auto* x = invocation.input<float>(0);
  const auto map = [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
    with_function(invocation.as<UnaryParams>(), [&](auto f) HWY_ATTR {
      for_each_run(rows, begin, end,
                   [&](const auto& offsets, const auto& strides, std::int64_t count, std::int64_t n) HWY_ATTR {
                     float* to = y + offsets[0];
                     const float* from = x + offsets[1];
                     if (packs && count > 1 && n < static_cast<std::int64_t>(hn::Lanes(D())))
                       return map_short_rows({count, n}, to, strides[0], f, from, strides[1]);
                     map_each_row({count, n}, to, strides[0], f, from, strides[1]);
                   });
    });
  };
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, map);
}

/// y[i] = 1 where x[i] is one of what p asks for, NaN or infinities; otherwise 0.
void test_row(const UnaryParams& p, std::size_t n, std::uint8_t* y, const float* x) {
  const D d;
  const hn::Rebind<std::uint8_t, D> bytes;
  const hn::RebindToSigned<D> words;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool nan = p.function == UnaryFunction::kIsNan;
  // NaN equals nothing.
  const V high = !nan && p.b != 0 ? hn::Set(d, kInfinity) : quiet_nan(d);
  const V low = !nan && p.a != 0 ? hn::Set(d, -kInfinity) : quiet_nan(d);
  const auto test = [&](V v) HWY_ATTR {
    const auto found = nan ? hn::IsNaN(v) : hn::Or(hn::Eq(v, high), hn::Eq(v, low));
    // Highway 1.0.3 permutes the wrong lanes in TruncateTo from 32 to 8 bits with AVX-512.
    return hn::DemoteTo(bytes, hn::IfThenElseZero(hn::RebindMask(words, found), hn::Set(words, 1)));
  };
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(test(hn::LoadU(d, x + i)), bytes, y + i);
  if (i < n) store_partial(test(load_partial(d, x + i, n - i)), bytes, y + i, n - i);
}

void run_test(const Invocation& invocation, const StridedRows<2>& rows) {
  auto* y = invocation.output<std::uint8_t>();
  const auto* x = invocation.input<float>(0);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) {
      test_row(invocation.as<UnaryParams>(), static_cast<std::size_t>(n), y + offsets[0], x + offsets[1]);
    });
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_unary);
HWY_EXPORT(run_test);

bool supports_unary_f32_simd(const OpCall& call) {
  if (call.in(0).type != ElementType::kF32 || call.as<UnaryParams>().function == UnaryFunction::kIdentity) return false;
  return make_rows<2>(call.out(), {&call.out(), &call.in(0)}).all_contiguous();
}

Status run_unary_f32_simd(const Invocation& invocation) {
  const auto rows = make_rows<2>(invocation.out(), {&invocation.out(), &invocation.in(0)});
  if (invocation.out().type == ElementType::kBool) {
    HWY_DYNAMIC_DISPATCH(run_test)(invocation, rows);
  } else {
    HWY_DYNAMIC_DISPATCH(run_unary)(invocation, rows);
  }
  return ok_status();
}

}  // namespace bantam::ops
#endif
