// Inverse square root and logarithm in 32-bit fixed point, to the bit as TensorFlow Lite's quantised reference kernels
// compute them. Used by l2_normalize_q, rsqrt_q and log_softmax_q.
//
// Source of the method: the public gemmlowp fixed-point definitions and TFLite's reference arithmetic. Qm means a
// signed 32-bit value with m integer bits. Freestanding, pure, defined for all arguments; see ops/fixed_point_math.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "ops/fixed_point_math.h"

namespace bantam::ops {

/// A factor as multiply_by_quantized_multiplier takes it.
struct FixedFactor {
  std::int32_t multiplier = 0;
  std::int32_t shift = 0;
};

namespace fixed_point_detail {

/// x * 2^exponent: saturated to the left, rounded to the right.
constexpr std::int32_t shift_by(std::int32_t x, int exponent) noexcept {
  if (exponent >= 0) return saturating_shift_left(x, std::min(exponent, 31));
  return rounding_divide_by_pot(x, std::min(-exponent, 31));
}

constexpr std::int32_t saturating_add(std::int32_t a, std::int32_t b) noexcept {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(
      std::int64_t{a} + b, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
}

}  // namespace fixed_point_detail

/// 1 / sqrt(x) for x >= 0, where 0 counts as 1: five Newton steps from 1, on x brought to [1/4, 1) by pairs of bits.
constexpr FixedFactor inverse_square_root(std::int32_t x) noexcept {
  using fixed_point_detail::saturating_shift_left;
  using fixed_point_detail::wrap_subtract;
  constexpr auto kTimes = saturating_rounding_doubling_high_mul;
  constexpr std::int32_t kThreeHalvesQ3 = (1 << 28) + (1 << 27);
  constexpr std::int32_t kHalfRootOfTwo = 1518500250;
  if (x <= 1) return {std::numeric_limits<std::int32_t>::max(), 0};
  int right_shift = 11;
  for (; x >= (1 << 29); x /= 4) ++right_shift;
  const int pairs = (std::countl_zero(static_cast<std::uint32_t>(x)) - 1) / 2 - 1;
  right_shift -= pairs;
  x <<= 2 * pairs;
  const std::int32_t half_q3 = rounding_divide_by_pot(x >> 1, 1);
  std::int32_t y = 1 << 28;  // 1 in Q3
  for (int step = 0; step < 5; ++step) {
    const std::int32_t cube = saturating_shift_left(kTimes(kTimes(y, y), y), 6);
    y = saturating_shift_left(wrap_subtract(kTimes(kThreeHalvesQ3, y), kTimes(half_q3, cube)), 3);
  }
  y = kTimes(y, kHalfRootOfTwo);
  if (right_shift < 0) return {static_cast<std::int32_t>(static_cast<std::uint32_t>(y) << -right_shift), 0};
  return {y, -right_shift};
}

/// Q5 natural logarithm of a Q12 x >= 1. Any other x gives some defined value.
constexpr std::int32_t log_q12_to_q5(std::int32_t x) noexcept {
  using fixed_point_detail::saturating_add;
  using fixed_point_detail::shift_by;
  using fixed_point_detail::wrap_add;
  using fixed_point_detail::wrap_subtract;
  constexpr auto kTimes = saturating_rounding_doubling_high_mul;
  constexpr int kInputBits = 12;
  constexpr int kAccumulatorBits = 6;
  constexpr std::int32_t kLog2 = 1488522236;
  constexpr std::int32_t kFourthRootOfHalf = 1805811301;
  constexpr std::int32_t kRootOfHalf = 1518500250;
  constexpr std::int32_t kAlphaN = 117049297;  // 11/240 * 2^(1/4), and the others of this rational approximation
  constexpr std::int32_t kAlphaD = 127690142;
  constexpr std::int32_t kAlphaI = 1057819769;
  constexpr std::int32_t kAlphaF = 638450708;
  constexpr std::int32_t kQuarterQ6 = 1 << 23;
  // The power of two nearest to x from either side, and x divided by it.
  const int zeros_a = std::countl_zero(static_cast<std::uint32_t>(x));
  const std::int32_t rest_a = shift_by(kTimes(shift_by(x, zeros_a - 1), kRootOfHalf), 1);
  const std::int32_t power_a = saturating_add(shift_by(kInputBits - zeros_a, 31 - kAccumulatorBits), kQuarterQ6);
  const int zeros_b = std::countl_zero(static_cast<std::uint32_t>(kTimes(x, kRootOfHalf))) - 1;
  const std::int32_t rest_b = shift_by(x, zeros_b);
  const std::int32_t power_b = saturating_add(shift_by(kInputBits - zeros_b, 31 - kAccumulatorBits), -kQuarterQ6);
  const std::int32_t r = std::min(rest_a, rest_b);
  const std::int32_t power = std::max(power_a, power_b);
  const std::int64_t sum = std::int64_t{r} + kFourthRootOfHalf;
  const auto p = static_cast<std::int32_t>((sum + (sum >= 0 ? 1 : -1)) / 2);
  const std::int32_t difference = wrap_subtract(r, kFourthRootOfHalf);
  const std::int32_t q = wrap_add(difference, difference);
  const std::int32_t q2 = kTimes(q, q);
  const std::int32_t numerator = wrap_add(kTimes(q, r), kTimes(kTimes(q, q2), kAlphaN));
  const std::int32_t denominator =
      wrap_add(kTimes(p, wrap_add(wrap_add(kAlphaI, q), kTimes(kAlphaD, q2))), kTimes(kAlphaF, q));
  const std::int32_t fraction =
      kTimes(rounding_divide_by_pot(numerator, kAccumulatorBits), one_over_one_plus(denominator));
  return shift_by(wrap_add(kTimes(power, kLog2), fraction), 1);
}

}  // namespace bantam::ops
