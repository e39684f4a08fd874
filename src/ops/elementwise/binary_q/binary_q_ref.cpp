#include <algorithm>

#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/elementwise/binary_q/binary_q.h"
#include "ops/elementwise/binary_q/kernels.h"
#include "ops/fixed_point.h"

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

/// The result before rescaling; a and b have their zero points subtracted.
std::int32_t combine(const BinaryQParams& p, std::int32_t a, std::int32_t b) {
  if (p.function == BinaryQFunction::kMul) return wrapping_multiply(a, b);
  const std::int32_t scaled_a =
      multiply_by_quantized_multiplier(wrapping_shift(a, p.left_shift), p.a_multiplier, p.a_shift);
  const std::int32_t scaled_b =
      multiply_by_quantized_multiplier(wrapping_shift(b, p.left_shift), p.b_multiplier, p.b_shift);
  return p.function == BinaryQFunction::kAdd ? wrapping_add(scaled_a, scaled_b) : wrapping_subtract(scaled_a, scaled_b);
}

}  // namespace

Status run_binary_q_ref(const Invocation& invocation) {
  const auto& p = invocation.as<BinaryQParams>();
  dispatch_type<std::int8_t, std::uint8_t, std::int16_t>(invocation.out().type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements2<T, T, T>(invocation, [&p](T a, T b) {
      const std::int32_t raw = combine(p, a - p.a_zero_point, b - p.b_zero_point);
      const std::int32_t scaled = multiply_by_quantized_multiplier(raw, p.output_multiplier, p.output_shift);
      return static_cast<T>(std::clamp<std::int64_t>(std::int64_t{scaled} + p.output_zero_point, p.minimum, p.maximum));
    });
  });
  return ok_status();
}

}  // namespace bantam::ops
