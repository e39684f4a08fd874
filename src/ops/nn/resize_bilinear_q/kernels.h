// What the kernels of resize_bilinear_q share, behind its variants table in resize_bilinear_q.cpp.
#pragma once

#include <cstdint>

#include "ops/nn/resize_bilinear_q/resize_bilinear_q.h"

namespace bantam::ops::resize_bilinear_q {

/// A pixel's width in the units of coordinates and weights.
constexpr int kFractionBits = 10;
constexpr std::int64_t kOne = 1 << kFractionBits;

/// Where coordinate i of the result lies in the operand, -kOne / 2 or more.
constexpr std::int64_t position(std::int64_t i, std::int64_t scale, bool half_pixel) noexcept {
  return half_pixel ? i * scale + scale / 2 - kOne / 2 : i * scale;
}

/// Vectors of channels.
Status run_channels(const Invocation& call);

}  // namespace bantam::ops::resize_bilinear_q
