#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/binary_q/binary_q_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <algorithm>
#include <cmath>

#include "hwy/highway.h"
#include "ops/common/binary_rows_simd-inl.h"
#include "ops/common/dispatch.h"
#include "ops/common/fixed_point_simd-inl.h"
#include "ops/common/nearest_steps_simd-inl.h"
#include "ops/elementwise/binary_q/binary_q.h"
#include "ops/elementwise/binary_q/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

/// An operand of add, sub or squared_difference, brought to the common scale.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V rescale(D d, V x, std::int32_t zero_point, std::int32_t left, std::int32_t multiplier, int shift) {
  const V shifted = hn::ShiftLeftSame(hn::Sub(x, hn::Set(d, zero_point)), left);
  return multiply_by_quantized_multiplier(d, shifted, hn::Set(d, multiplier), shift);
}

/// The result less its zero point, not clamped yet; a and b are stored values.
template <BinaryQFunction kFunction, class D, class V = hn::Vec<D>>
HWY_INLINE V scaled_result(D d, const BinaryQParams& p, V a, V b) {
  const auto output = [&](V raw) HWY_ATTR {
    return multiply_by_quantized_multiplier(d, raw, hn::Set(d, p.output_multiplier), p.output_shift);
  };
  if constexpr (kFunction == BinaryQFunction::kMul || kFunction == BinaryQFunction::kPrelu) {
    const V centred = hn::Sub(a, hn::Set(d, p.a_zero_point));
    const V product = hn::Mul(centred, hn::Sub(b, hn::Set(d, p.b_zero_point)));
    if constexpr (kFunction == BinaryQFunction::kMul) return output(product);
    const V bent = multiply_by_quantized_multiplier(d, product, hn::Set(d, p.a_multiplier), p.a_shift);
    return hn::IfThenElse(hn::Lt(centred, hn::Zero(d)), bent, output(centred));
  } else {
    const V scaled_a = rescale(d, a, p.a_zero_point, p.left_shift, p.a_multiplier, p.a_shift);
    const V scaled_b = rescale(d, b, p.b_zero_point, p.left_shift, p.b_multiplier, p.b_shift);
    if constexpr (kFunction == BinaryQFunction::kAdd) return output(hn::Add(scaled_a, scaled_b));
    const V difference = hn::Sub(scaled_a, scaled_b);
    return output(kFunction == BinaryQFunction::kSub ? difference : hn::Mul(difference, difference));
  }
}

/// Results of vectors of stored values. Has a copy of the parameters, which stores of bytes cannot change.
template <BinaryQFunction kFunction>
class CombineQ {
 public:
  using D = hn::ScalableTag<std::int32_t>;
  using V = hn::Vec<D>;

  explicit CombineQ(const BinaryQParams& p) : p_(p) {}

  HWY_INLINE V operator()(D d, V a, V b) const {
    // Limits before the zero point is added: the sum cannot leave int32 (all three lie within the element type).
    const V low = hn::Set(d, p_.minimum - p_.output_zero_point);
    const V high = hn::Set(d, p_.maximum - p_.output_zero_point);
    return hn::Add(hn::Min(hn::Max(steps(a, b), low), high), hn::Set(d, p_.output_zero_point));
  }
  HWY_INLINE V steps(V a, V b) const { return scaled_result<kFunction>(D(), p_, a, b); }

 private:
  BinaryQParams p_;
};

/// What a number is multiplied by.
double real_multiplier(std::int32_t multiplier, int shift) { return std::ldexp(multiplier, shift - 31); }

/// Of sums and differences. Usual are those in which nothing exceeds int32 and whose roundings are together at most a
/// quarter of a unit: one of each operand after its scaling, by at most 1, and a half before the last one.
OperandSteps operand_steps(const BinaryQParams& p) {
  constexpr std::int32_t kMostLeft = 20;
  const double output = real_multiplier(p.output_multiplier, p.output_shift);
  const double error = 2 * output + std::ldexp(0.5, p.output_shift);
  const bool no_overflow = p.left_shift <= kMostLeft && std::max({p.a_shift, p.b_shift, p.output_shift}) <= 0;
  const double units = std::ldexp(output, p.left_shift);
  return {units * real_multiplier(p.a_multiplier, p.a_shift),
          units * real_multiplier(p.b_multiplier, p.b_shift),
          p.a_zero_point,
          p.b_zero_point,
          no_overflow && error <= StepUnits::kUnit / 4,
          false};
}

template <BinaryQFunction kFunction, typename T>
void combine_stored(const Invocation& invocation, const StridedRows<3>& rows) {
  const auto& p = invocation.as<BinaryQParams>();
  const CombineQ<kFunction> exact(p);
  if constexpr (kFunction == BinaryQFunction::kAdd || kFunction == BinaryQFunction::kSub) {
    constexpr auto kSum = kFunction == BinaryQFunction::kAdd ? BinaryFunction::kAdd : BinaryFunction::kSub;
    using Guessed = GuessedCombine<CombineQ<kFunction>, NearestSteps<kSum, true>, T, T>;
    combine_rows<T, T>(invocation, rows, Guessed(exact, operand_steps(p), {p.output_zero_point, p.minimum, p.maximum}));
  } else {
    combine_rows<T, T>(invocation, rows, exact);
  }
}

void run_binary_q(const Invocation& invocation, const StridedRows<3>& rows) {
  dispatch_type<std::int8_t, std::uint8_t>(invocation.out().type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (invocation.as<BinaryQParams>().function) {
      case BinaryQFunction::kAdd: combine_stored<BinaryQFunction::kAdd, T>(invocation, rows); break;
      case BinaryQFunction::kSub: combine_stored<BinaryQFunction::kSub, T>(invocation, rows); break;
      case BinaryQFunction::kSquaredDifference:
        combine_stored<BinaryQFunction::kSquaredDifference, T>(invocation, rows);
        break;
      case BinaryQFunction::kPrelu: combine_stored<BinaryQFunction::kPrelu, T>(invocation, rows); break;
      default: combine_stored<BinaryQFunction::kMul, T>(invocation, rows); break;
    }
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_binary_q);

bool supports_binary_q_i8_simd(const OpCall& call) {
  const BinaryQFunction function = call.as<BinaryQParams>().function;
  if (function == BinaryQFunction::kDiv || is_comparison(function)) return false;
  if (!is_one_of<std::int8_t, std::uint8_t>(call.out().type)) return false;
  return make_rows<3>(call.out(), {&call.out(), &call.in(0), &call.in(1)}).contiguous_or_broadcast();
}

Status run_binary_q_i8_simd(const Invocation& invocation) {
  const auto rows = make_rows<3>(invocation.out(), {&invocation.out(), &invocation.in(0), &invocation.in(1)});
  HWY_DYNAMIC_DISPATCH(run_binary_q)(invocation, rows);
  return ok_status();
}

}  // namespace bantam::ops
#endif
