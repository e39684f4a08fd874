// Conversions between float and the two 16-bit floating point formats: IEEE 754 binary16 and bfloat16.
//
// Used by element conversion of host arrays. Pure functions; rounding is to nearest, ties to even; values beyond the
// largest finite number become infinity; NaN stays NaN (quiet). Exact in the widening direction.
#pragma once

#include <bit>
#include <cstdint>

namespace bantam::io {

constexpr float half_to_float(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fU;
  const std::uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent == 0) {
    // Subnormal: mantissa * 2^-24, exact in float.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

constexpr std::uint16_t float_to_half(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  constexpr std::uint32_t kInfinity = 0x7f800000U;
  constexpr std::uint32_t kOverflow = 0x477ff000U;        // 65520, halfway between the largest half and 2^16
  constexpr std::uint32_t kSmallestNormal = 0x38800000U;  // 2^-14
  if (magnitude > kInfinity) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= kOverflow) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude < kSmallestNormal) {
    // The unit in the last place of 0.5 is 2^-24, that of a subnormal half: the addition does the rounding.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign |
                                      (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F)));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

constexpr float bfloat16_to_float(std::uint16_t value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

constexpr std::uint16_t float_to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace bantam::io
