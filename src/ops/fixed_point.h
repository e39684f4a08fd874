// Fixed-point arithmetic of TensorFlow Lite's quantisation specification, to the bit.
//
// Source of the method: the public gemmlowp documentation (fixed-point "quantised multiplier" with double rounding) and
// TFLite's quantisation specification. A real multiplier m > 0 is stored as Q31 mantissa and exponent: m = multiplier *
// 2^(shift - 31). Freestanding, pure functions; ranges stand at each function.
#pragma once

#include <cstdint>
#include <limits>

namespace bantam::ops {

/// round(a * b / 2^31) with ties away from zero toward +inf for positive results; saturates the one overflowing case.
constexpr std::int32_t saturating_rounding_doubling_high_mul(std::int32_t a, std::int32_t b) noexcept {
  if (a == b && a == std::numeric_limits<std::int32_t>::min()) return std::numeric_limits<std::int32_t>::max();
  const std::int64_t product = static_cast<std::int64_t>(a) * b;
  // The definition adds 1 - 2^30 to a negative product and truncates toward zero, which is the same as the floor here.
  return static_cast<std::int32_t>((product + (std::int64_t{1} << 30)) >> 31);
}

/// x / 2^exponent rounded to nearest, ties away from zero. 0 <= exponent <= 31.
constexpr std::int32_t rounding_divide_by_pot(std::int32_t x, int exponent) noexcept {
  const std::int32_t mask = static_cast<std::int32_t>((std::int64_t{1} << exponent) - 1);
  const std::int32_t remainder = x & mask;
  const std::int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> exponent) + (remainder > threshold ? 1 : 0);
}

/// x * multiplier * 2^(shift - 31) with TFLite's double rounding. -31 <= shift <= 30. The left shift wraps like two's
/// complement, as the formats' own kernels do on every known target.
constexpr std::int32_t multiply_by_quantized_multiplier(std::int32_t x, std::int32_t multiplier, int shift) noexcept {
  const int left = shift > 0 ? shift : 0;
  const int right = shift > 0 ? 0 : -shift;
  const auto shifted = static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << left);
  return rounding_divide_by_pot(saturating_rounding_doubling_high_mul(shifted, multiplier), right);
}

/// The same of a 64-bit sum, as TFLite's kernels with int16 activations define it: the multiplier is reduced to 15 bits
/// and the result rounded once, ties toward +inf. -31 <= shift <= 14. Products and the result wrap; with |x| < 2^47 and
/// a result within int32 nothing does.
constexpr std::int32_t multiply_wide_by_quantized_multiplier(std::int64_t x, std::int32_t multiplier,
                                                             int shift) noexcept {
  constexpr std::int32_t kLargestReduced = 0x7fff;
  const std::int32_t reduced = multiplier < 0x7fff0000 ? (multiplier + (1 << 15)) >> 16 : kLargestReduced;
  const int total_shift = 15 - shift;
  const std::uint64_t product = static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(std::int64_t{reduced}) +
                                (std::uint64_t{1} << (total_shift - 1));
  return static_cast<std::int32_t>(static_cast<std::int64_t>(product) >> total_shift);
}

}  // namespace bantam::ops
