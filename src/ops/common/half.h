// 16-bit floating-point formats as storage: IEEE binary16 and bfloat16, converted to and from float. Rounding is to
// nearest, ties to even; NaN stays NaN; overflow gives infinity. Freestanding, pure functions, no hardware support
// needed.
#pragma once

#include <bit>
#include <cstdint>

namespace bantam::ops {

struct Half {
  std::uint16_t bits;
};

struct BFloat16 {
  std::uint16_t bits;
};

constexpr float to_f32(Half h) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (h.bits >> 10) & 0x1fU;
  const std::uint32_t mantissa = h.bits & 0x3ffU;
  if (exponent == 0x1fU) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
  // Zero or subnormal: mantissa * 2^-24 is exact in float.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

constexpr float to_f32(BFloat16 b) noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16); }

constexpr Half to_half(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const auto with_sign = [sign](std::uint32_t rest) { return Half{static_cast<std::uint16_t>(sign | rest)}; };
  if (magnitude > 0x7f800000U) return with_sign(0x7e00U | ((magnitude >> 13) & 0x3ffU));
  if (magnitude >= 0x47800000U) return with_sign(0x7c00U);  // 2^16 and above
  if (magnitude < 0x38800000U) {
    // Below 2^-14, subnormal or zero: adding 1/2 places the half's last bit at the float's last bit, correctly rounded.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return with_sign(std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U);
  }
  // Rounding may carry into the exponent, up to infinity, which is then the right answer.
  const std::uint32_t odd = (magnitude >> 13) & 1U;
  return with_sign((magnitude - 0x38000000U + 0xfffU + odd) >> 13);
}

constexpr BFloat16 to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

}  // namespace bantam::ops
