// Transcendental functions in 32-bit fixed point, to the bit as TensorFlow Lite's quantised reference kernels compute
// them. Used by softmax_q and by importers that tabulate int8 activations (operator lookup8).
//
// Source of the method: the public gemmlowp fixed-point definitions and TFLite's quantisation specification. Qm means a
// signed 32-bit value with m integer bits: real = raw / 2^(31 - m). Freestanding, pure, defined for all arguments:
// where the formats' own kernels would overflow, these wrap or saturate. Ranges of exactness stand at each function.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/fixed_point.h"

namespace bantam::ops {

namespace fixed_point_detail {

constexpr std::int32_t wrap_add(std::int32_t a, std::int32_t b) noexcept {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

constexpr std::int32_t wrap_subtract(std::int32_t a, std::int32_t b) noexcept {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}

/// a * 2^exponent, saturated.
constexpr std::int32_t saturating_shift_left(std::int32_t a, int exponent) noexcept {
  const std::int64_t wide = static_cast<std::int64_t>(a) * (std::int64_t{1} << exponent);
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(wide, std::numeric_limits<std::int32_t>::min(),
                                                            std::numeric_limits<std::int32_t>::max()));
}

/// Q0 exp(x) for x in [-1/4, 0): the Taylor polynomial of degree 4 about -1/8.
constexpr std::int32_t exp_last_quarter(std::int32_t x_q0) noexcept {
  constexpr std::int32_t kExpMinusEighth = 1895147668;
  constexpr std::int32_t kOneThird = 715827883;
  const std::int32_t x = wrap_add(x_q0, 1 << 28);
  const std::int32_t x2 = saturating_rounding_doubling_high_mul(x, x);
  const std::int32_t x3 = saturating_rounding_doubling_high_mul(x2, x);
  const std::int32_t x4 = saturating_rounding_doubling_high_mul(x2, x2);
  const std::int32_t third_order = wrap_add(rounding_divide_by_pot(x4, 2), x3);
  const std::int32_t tail =
      rounding_divide_by_pot(wrap_add(saturating_rounding_doubling_high_mul(third_order, kOneThird), x2), 1);
  return wrap_add(kExpMinusEighth, saturating_rounding_doubling_high_mul(kExpMinusEighth, wrap_add(x, tail)));
}

/// Q2 of 1 / ((1 + x) / 2) for Q0 x in [0, 1): three Newton steps from the best linear guess 48/17 - 32/17 d.
constexpr std::int32_t reciprocal_of_half_sum(std::int32_t x_q0) noexcept {
  constexpr std::int32_t k48Over17Q2 = 1515870810;
  constexpr std::int32_t kMinus32Over17Q2 = -1010580540;
  constexpr std::int32_t kOneQ2 = 1 << 29;
  const std::int64_t sum = static_cast<std::int64_t>(x_q0) + std::numeric_limits<std::int32_t>::max();
  const auto denominator = static_cast<std::int32_t>((sum + (sum >= 0 ? 1 : -1)) / 2);
  std::int32_t y = wrap_add(k48Over17Q2, saturating_rounding_doubling_high_mul(denominator, kMinus32Over17Q2));
  for (int step = 0; step < 3; ++step) {
    const std::int32_t error = wrap_subtract(kOneQ2, saturating_rounding_doubling_high_mul(denominator, y));
    y = wrap_add(y, saturating_shift_left(saturating_rounding_doubling_high_mul(y, error), 2));
  }
  return y;
}

}  // namespace fixed_point_detail

/// Q0 exp(x) of a Qm x <= 0 with m = IntegerBits <= 5. Any other x gives some defined value.
template <int IntegerBits>
constexpr std::int32_t exp_of_negative(std::int32_t x) noexcept {
  static_assert(IntegerBits >= 0 && IntegerBits <= 5);
  constexpr int kFractionalBits = 31 - IntegerBits;
  constexpr std::int32_t kQuarter = std::int32_t{1} << (kFractionalBits - 2);
  // exp(-2^i) in Q0 for i = -2, -1, ... 4: x is a number in [-1/4, 0) less a sum of such powers.
  constexpr std::int32_t kFactors[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
  if (x == 0) return std::numeric_limits<std::int32_t>::max();
  const std::int32_t within = (x & (kQuarter - 1)) - kQuarter;
  std::int32_t result =
      fixed_point_detail::exp_last_quarter(fixed_point_detail::saturating_shift_left(within, IntegerBits));
  const std::int32_t powers = fixed_point_detail::wrap_subtract(within, x);
  for (int i = -2; i < IntegerBits; ++i)
    if (((powers >> (kFractionalBits + i)) & 1) != 0)
      result = saturating_rounding_doubling_high_mul(result, kFactors[i + 2]);
  return result;
}

/// Q0 1 / (1 + x) of a Q0 x in [0, 1).
constexpr std::int32_t one_over_one_plus(std::int32_t x_q0) noexcept {
  // Read as Q1 the number is halved: 1 / (1 + x) itself, to be brought to Q0.
  return fixed_point_detail::saturating_shift_left(fixed_point_detail::reciprocal_of_half_sum(x_q0), 1);
}

/// 1 / x as mantissa * 2^-exponent.
struct FixedPointReciprocal {
  std::int32_t mantissa = 0;  ///< Q0, in (1/2, 1]
  int exponent = 0;           ///< binary digits of x above the unit, may be negative
};

/// The reciprocal of x > 0 in Qm with m = `integer_bits`.
constexpr FixedPointReciprocal fixed_point_reciprocal(std::int32_t x, int integer_bits) noexcept {
  const auto bits = static_cast<std::uint32_t>(std::max<std::int32_t>(x, 1));
  const int headroom = std::countl_zero(bits);
  const auto fraction = static_cast<std::int32_t>((bits << headroom) - (std::uint32_t{1} << 31));
  return {one_over_one_plus(fraction), integer_bits - headroom};
}

/// Q0 1 / (1 + exp(-x)) of a Q4 x.
constexpr std::int32_t logistic_q4(std::int32_t x) noexcept {
  if (x == 0) return std::int32_t{1} << 30;
  const std::int32_t minus_magnitude = x > 0 ? fixed_point_detail::wrap_subtract(0, x) : x;
  const std::int32_t of_magnitude = one_over_one_plus(exp_of_negative<4>(minus_magnitude));
  return x > 0 ? of_magnitude : std::numeric_limits<std::int32_t>::max() - of_magnitude;
}

/// Q0 tanh(x) of a Q4 x.
constexpr std::int32_t tanh_q4(std::int32_t x) noexcept {
  if (x == 0) return 0;
  const std::int32_t minus_magnitude = x > 0 ? fixed_point_detail::wrap_subtract(0, x) : x;
  // (1 - e) / (1 + e) = 2 / (1 + e) - 1 with e = exp(-2 |x|); the same bits read as Q5 are twice the value.
  const std::int32_t e = exp_of_negative<5>(minus_magnitude);
  const std::int32_t of_magnitude = fixed_point_detail::saturating_shift_left(
      fixed_point_detail::wrap_subtract(fixed_point_detail::reciprocal_of_half_sum(e), 1 << 29), 2);
  return x > 0 ? of_magnitude : fixed_point_detail::wrap_subtract(0, of_magnitude);
}

/// How an int8 input of logistic or tanh reaches Q4: multiply_by_quantized_multiplier(q - zero_point, multiplier,
/// shift). From `radius` on, |q - zero_point| is beyond Q4 and the result saturates.
struct ActivationInput {
  std::int32_t multiplier = 0;  ///< Q31 mantissa of scale * 2^27
  int shift = 0;                ///< its exponent, in [-31, 30]
  std::int32_t radius = 0;      ///< floor(15 * 2^27 / 2^shift), TFLite's CalculateInputRadius(4, shift, 31)
};

/// The ActivationInput of a tensor with that positive, finite scale. A float scale as stored in TFLite files is exact.
inline ActivationInput activation_input(double scale) noexcept {
  int shift = 0;
  const double mantissa = std::frexp(scale * 134217728.0, &shift);
  auto multiplier = static_cast<std::int64_t>(std::round(mantissa * 2147483648.0));
  if (multiplier == std::int64_t{1} << 31) {
    multiplier /= 2;
    ++shift;
  }
  if (shift > 30) return {};            // every nonzero input saturates
  if (shift < -31) return {0, 0, 256};  // every input rounds to zero
  const double radius = std::floor(std::ldexp(15.0 * 134217728.0, -shift));
  return {static_cast<std::int32_t>(multiplier), shift, static_cast<std::int32_t>(std::min(radius, 2147483647.0))};
}

/// int8 logistic with result scale 1/256, zero point -128. `input` = q - zero_point, in [-255, 255].
constexpr std::int8_t logistic_i8(std::int32_t input, const ActivationInput& to_q4) noexcept {
  if (input <= -to_q4.radius) return -128;
  if (input >= to_q4.radius) return 127;
  const std::int32_t q0 = logistic_q4(multiply_by_quantized_multiplier(input, to_q4.multiplier, to_q4.shift));
  return static_cast<std::int8_t>(std::clamp<std::int32_t>(rounding_divide_by_pot(q0, 23) - 128, -128, 127));
}

/// int8 tanh with result scale 1/128, zero point 0. `input` = q - zero_point, in [-255, 255].
constexpr std::int8_t tanh_i8(std::int32_t input, const ActivationInput& to_q4) noexcept {
  if (input <= -to_q4.radius) return -128;
  if (input >= to_q4.radius) return 127;
  const std::int32_t q0 = tanh_q4(multiply_by_quantized_multiplier(input, to_q4.multiplier, to_q4.shift));
  return static_cast<std::int8_t>(std::clamp<std::int32_t>(rounding_divide_by_pot(q0, 24), -128, 127));
}

}  // namespace bantam::ops
