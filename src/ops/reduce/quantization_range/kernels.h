// The kernels of `quantization_range`, for its table of variants. Contracts: quantization_range.h and ops/op.h.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/elementwise/unary/function.h"
#include "ops/op.h"

namespace bantam::ops {

/// From the lowest to the highest of some numbers and zero.
struct NumberRange {
  float low = 0.0F;
  float high = 0.0F;

  /// A number that is none changes nothing.
  void add(float x) noexcept {
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
};

inline void store_quantization(const NumberRange& range, const Invocation& invocation) noexcept {
  const float scale = range.low == range.high ? 1.0F : (range.high - range.low) / 255.0F;
  const float zero_point = (0.0F - range.low) / scale;
  const float limited = std::isnan(zero_point) ? 0.0F : std::clamp(zero_point, 0.0F, 255.0F);
  *invocation.output<float>(0) = scale;
  *invocation.output<std::uint8_t>(1) =
      static_cast<std::uint8_t>(apply_unary(limited, UnaryFunction::kRound, 0.0F, 0.0F));
}

/// Dense operands.
bool supports_quantization_range_simd(const OpCall& call);
Footprint footprint_quantization_range_simd(const OpCall& call, int threads);
Status run_quantization_range_simd(const Invocation& invocation);

}  // namespace bantam::ops
