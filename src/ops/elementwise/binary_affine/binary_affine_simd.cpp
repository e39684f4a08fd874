#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/binary_affine/binary_affine_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/binary_rows_simd-inl.h"
#include "ops/common/dispatch.h"
#include "ops/common/nearest_steps_simd-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/elementwise/binary_affine/binary_affine.h"
#include "ops/elementwise/binary_affine/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <BinaryFunction kFunction, class V>
HWY_INLINE V combine_real(V a, V b) {
  if constexpr (kFunction == BinaryFunction::kSub) return hn::Sub(a, b);
  if constexpr (kFunction == BinaryFunction::kMul) return hn::Mul(a, b);
  if constexpr (kFunction == BinaryFunction::kDiv) return hn::Div(a, b);
  if constexpr (kFunction == BinaryFunction::kMin) return hn::Min(a, b);
  if constexpr (kFunction == BinaryFunction::kMax) return hn::Max(a, b);
  if constexpr (kFunction == BinaryFunction::kPrelu)
    return hn::IfThenElse(hn::Lt(a, hn::Zero(hn::DFromV<V>())), hn::Mul(a, b), a);
  return hn::Add(a, b);
}

/// The reference's arithmetic on vectors of int32. Has copies of the parameters, which stores of bytes cannot change.
template <BinaryFunction kFunction>
class Combine {
 public:
  using D = hn::ScalableTag<std::int32_t>;
  using DF = hn::Rebind<float, D>;
  using V = hn::Vec<D>;
  using VF = hn::Vec<DF>;

  HWY_INLINE explicit Combine(const BinaryAffineParams& p)
      : a_zero_(hn::Set(D(), p.a_zero_point)),
        b_zero_(hn::Set(D(), p.b_zero_point)),
        y_zero_(hn::Set(D(), p.y_zero_point)),
        a_scale_(hn::Set(DF(), p.a_scale)),
        b_scale_(hn::Set(DF(), p.b_scale)),
        y_scale_(hn::Set(DF(), p.y_scale)),
        low_(hn::Set(DF(), static_cast<float>(p.minimum - p.y_zero_point))),
        high_(hn::Set(DF(), static_cast<float>(p.maximum - p.y_zero_point))) {}

  /// b: V, stored numbers, or VF, numbers themselves.
  template <class B>
  HWY_INLINE V operator()(D /*d*/, V qa, B b) const {
    return hn::Add(nearest_in_range(hn::Max(below_high(qa, b), low_)), y_zero_);
  }

  /// The same without zero point and lower limit.
  template <class B>
  HWY_INLINE V steps(V qa, B b) const {
    return nearest_in_range(below_high(qa, b));
  }

 private:
  HWY_INLINE VF real(V qb) const { return hn::Mul(hn::ConvertTo(DF(), hn::Sub(qb, b_zero_)), b_scale_); }
  HWY_INLINE VF real(VF b) const { return b; }

  template <class B>
  HWY_INLINE VF below_high(V qa, B b) const {
    const auto a = hn::Mul(hn::ConvertTo(DF(), hn::Sub(qa, a_zero_)), a_scale_);
    const VF y = hn::Div(combine_real<kFunction>(a, real(b)), y_scale_);
    return hn::Min(hn::IfThenElseZero(hn::Eq(y, y), y), high_);
  }

  V a_zero_;
  V b_zero_;
  V y_zero_;
  VF a_scale_;
  VF b_scale_;
  VF y_scale_;
  VF low_;
  VF high_;
};

/// Operand 1's scale is 1 where it `is_real`.
OperandSteps operand_steps(const BinaryAffineParams& p, bool is_real) {
  const auto is_usual = [](float scale) { return scale > 0x1p-60F && scale < 0x1p60F; };
  const bool is_product = p.function == BinaryFunction::kMul || p.function == BinaryFunction::kPrelu;
  const float b_scale = is_real ? 1.0F : p.b_scale;
  const double y = p.y_scale;
  return {p.a_scale / y,
          is_product ? b_scale : b_scale / y,
          p.a_zero_point,
          is_real ? 0 : p.b_zero_point,
          is_usual(p.a_scale) && is_usual(b_scale) && is_usual(p.y_scale),
          is_real};
}

template <BinaryFunction kFunction, typename T>
void combine_affine(const Invocation& invocation, const StridedRows<3>& rows) {
  const auto& p = invocation.as<BinaryAffineParams>();
  const Combine<kFunction> exact(p);
  const ByteLimits limits{p.y_zero_point, p.minimum, p.maximum};
  if (invocation.in(1).type == ElementType::kF32) {
    using Guessed = GuessedCombine<Combine<kFunction>, NearestSteps<kFunction>, T, float>;
    combine_rows<T, float>(invocation, rows, Guessed(exact, operand_steps(p, true), limits));
  } else {
    using Guessed = GuessedCombine<Combine<kFunction>, NearestSteps<kFunction>, T, T>;
    combine_rows<T, T>(invocation, rows, Guessed(exact, operand_steps(p, false), limits));
  }
}

void run_binary_affine(const Invocation& invocation, const StridedRows<3>& rows) {
  dispatch_type<std::int8_t, std::uint8_t>(invocation.out().type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (invocation.as<BinaryAffineParams>().function) {
      case BinaryFunction::kSub: combine_affine<BinaryFunction::kSub, T>(invocation, rows); break;
      case BinaryFunction::kMul: combine_affine<BinaryFunction::kMul, T>(invocation, rows); break;
      case BinaryFunction::kDiv: combine_affine<BinaryFunction::kDiv, T>(invocation, rows); break;
      case BinaryFunction::kMin: combine_affine<BinaryFunction::kMin, T>(invocation, rows); break;
      case BinaryFunction::kMax: combine_affine<BinaryFunction::kMax, T>(invocation, rows); break;
      case BinaryFunction::kPrelu: combine_affine<BinaryFunction::kPrelu, T>(invocation, rows); break;
      default: combine_affine<BinaryFunction::kAdd, T>(invocation, rows); break;
    }
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_binary_affine);

namespace {

/// Of an OpCall or an Invocation.
template <typename Call>
StridedRows<3> rows_of(const Call& call) {
  return make_rows<3>(call.out(), {&call.out(), &call.in(0), &call.in(1)});
}

bool commutes(BinaryFunction function) { return function == BinaryFunction::kAdd || function == BinaryFunction::kMul; }

/// With the operands exchanged: the one that all rows share is then the second.
void run_exchanged(const Invocation& call) {
  BinaryAffineParams p = call.as<BinaryAffineParams>();
  std::swap(p.a_scale, p.b_scale);
  std::swap(p.a_zero_point, p.b_zero_point);
  const Tensor inputs[] = {call.inputs[1], call.inputs[0]};
  Invocation exchanged = call;
  exchanged.params = &p;
  exchanged.inputs = inputs;
  HWY_DYNAMIC_DISPATCH(run_binary_affine)(exchanged, rows_of(exchanged));
}

}  // namespace

bool supports_binary_affine_i8_simd(const OpCall& call) {
  if (!is_one_of<std::int8_t, std::uint8_t>(call.out().type)) return false;
  return rows_of(call).contiguous_or_broadcast();
}

Status run_binary_affine_i8_simd(const Invocation& invocation) {
  const auto rows = rows_of(invocation);
  const bool alike = invocation.in(0).type == invocation.in(1).type;
  if (shared_operand(rows) == 1 && alike && commutes(invocation.as<BinaryAffineParams>().function)) {
    run_exchanged(invocation);
  } else {
    HWY_DYNAMIC_DISPATCH(run_binary_affine)(invocation, rows);
  }
  return ok_status();
}

}  // namespace bantam::ops
#endif
