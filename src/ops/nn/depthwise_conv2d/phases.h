// The phases of a dilated convolution: columns of the result a dilation apart are a convolution without dilation of
// columns of the image as far apart. Freestanding, pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/nn/conv2d/geometry.h"

namespace bantam::ops::depthwise {

/// Columns `phase`, phase + dilation ... of the result of a convolution with a stride of 1; 0 <= phase < dilation.
inline ConvGeometry phase_of(const ConvGeometry& g, std::int64_t phase) noexcept {
  const std::int64_t step = g.horizontal.dilation;
  const std::int64_t origin = window_origin(g.horizontal, phase);
  const std::int64_t skipped = (origin % step + step) % step;
  const auto count = [&](std::int64_t extent, std::int64_t first) {
    return static_cast<std::int32_t>(std::max<std::int64_t>(extent - first + step - 1, 0) / step);
  };
  ConvGeometry part = g;
  part.x.first += skipped * g.x.w_stride;
  part.x.w = count(g.x.w, skipped);
  part.x.w_stride *= step;
  part.y.first += phase * g.y.w_stride;
  part.y.w = count(g.y.w, phase);
  part.y.w_stride *= step;
  part.horizontal.dilation = 1;
  part.horizontal.pad_before = static_cast<std::int32_t>((skipped - origin) / step);
  return part;
}

}  // namespace bantam::ops::depthwise
