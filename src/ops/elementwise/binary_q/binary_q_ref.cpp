#include <algorithm>
#include <bit>
#include <limits>

#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/elementwise/binary_q/binary_q.h"
#include "ops/elementwise/binary_q/kernels.h"
#include "ops/fixed_point_math.h"

namespace bantam::ops {
namespace {

// Sums, products and left shifts wrap like two's complement; with a real model's parameters none of them overflows.
std::int32_t wrapping_add(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
std::int32_t wrapping_subtract(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}
std::int32_t wrapping_multiply(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
}
std::int32_t wrapping_shift(std::int32_t a, int left) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) << left);
}

std::int32_t scaled(const BinaryQParams& p, std::int32_t x, std::int32_t multiplier, int shift) {
  return multiply_by_quantized_multiplier(wrapping_shift(x, p.left_shift), multiplier, shift);
}
std::int32_t scaled_a(const BinaryQParams& p, std::int32_t a) { return scaled(p, a, p.a_multiplier, p.a_shift); }
std::int32_t scaled_b(const BinaryQParams& p, std::int32_t b) { return scaled(p, b, p.b_multiplier, p.b_shift); }

/// a / b times the output's multiplier: a is brought to 31 bits, b inverted, and both shifts are undone together.
std::int32_t quotient(const BinaryQParams& p, std::int32_t a, std::int32_t b) {
  constexpr int kBits = 31;
  if (b < 0) {
    a = -a;
    b = -b;
  }
  const FixedPointReciprocal inverse = fixed_point_reciprocal(b, kBits);
  const int headroom = std::countl_zero(static_cast<std::uint32_t>(a < 0 ? ~a : a)) - 1;
  const std::int32_t unscaled = saturating_rounding_doubling_high_mul(wrapping_shift(a, headroom), inverse.mantissa);
  const int shift = p.output_shift - inverse.exponent - headroom;
  // Beyond the range of shifts the quotient rounds to zero, or is larger than any element type.
  if (shift < -31 || a == 0) return 0;
  if (shift > 30) return a < 0 ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int32_t>::max();
  return multiply_by_quantized_multiplier(unscaled, p.output_multiplier, shift);
}

/// The result less its zero point, not clamped yet; a and b have their zero points subtracted.
std::int32_t combine(const BinaryQParams& p, std::int32_t a, std::int32_t b) {
  std::int32_t raw = 0;
  switch (p.function) {
    case BinaryQFunction::kAdd: raw = wrapping_add(scaled_a(p, a), scaled_b(p, b)); break;
    case BinaryQFunction::kSub: raw = wrapping_subtract(scaled_a(p, a), scaled_b(p, b)); break;
    case BinaryQFunction::kMul: raw = wrapping_multiply(a, b); break;
    case BinaryQFunction::kSquaredDifference: {
      const std::int32_t difference = wrapping_subtract(scaled_a(p, a), scaled_b(p, b));
      raw = wrapping_multiply(difference, difference);
      break;
    }
    case BinaryQFunction::kDiv: return quotient(p, a, b);
    case BinaryQFunction::kPrelu:
      if (a < 0) return multiply_by_quantized_multiplier(wrapping_multiply(a, b), p.a_multiplier, p.a_shift);
      raw = a;
      break;
    default: break;
  }
  return multiply_by_quantized_multiplier(raw, p.output_multiplier, p.output_shift);
}

bool holds(const BinaryQParams& p, std::int32_t a, std::int32_t b) {
  const std::int32_t x = scaled_a(p, a);
  const std::int32_t y = scaled_b(p, b);
  switch (p.function) {
    case BinaryQFunction::kEqual: return x == y;
    case BinaryQFunction::kNotEqual: return x != y;
    case BinaryQFunction::kLess: return x < y;
    case BinaryQFunction::kLessEqual: return x <= y;
    case BinaryQFunction::kGreater: return x > y;
    default: return x >= y;
  }
}

}  // namespace

Status run_binary_q_ref(const Invocation& invocation) {
  const auto& p = invocation.as<BinaryQParams>();
  dispatch_type<std::int8_t, std::uint8_t, std::int16_t>(invocation.in(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (is_comparison(p.function)) {
      map_elements2<std::uint8_t, T, T>(invocation, [&p](T a, T b) {
        return static_cast<std::uint8_t>(holds(p, a - p.a_zero_point, b - p.b_zero_point) ? 1 : 0);
      });
      return;
    }
    map_elements2<T, T, T>(invocation, [&p](T a, T b) {
      const std::int64_t y = combine(p, a - p.a_zero_point, b - p.b_zero_point);
      return static_cast<T>(std::clamp<std::int64_t>(y + p.output_zero_point, p.minimum, p.maximum));
    });
  });
  return ok_status();
}

}  // namespace bantam::ops
