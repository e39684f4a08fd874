// The phases of a dilated convolution: columns, or rows, of the result a dilation apart are a convolution without
// dilation of columns, or rows, of the image as far apart. Freestanding, pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "ops/nn/conv2d/geometry.h"

namespace bantam::ops::depthwise {

/// Are there phases of that axis whose windows share lines of the image?
inline bool goes_by_phases(const WindowAxis& axis) noexcept {
  return axis.dilation > 1 && axis.stride == 1 && axis.kernel > 1;
}

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

/// The same images with rows and columns exchanged.
inline ConvGeometry turned(ConvGeometry g) noexcept {
  for (ImageShape* image : {&g.x, &g.y}) {
    std::swap(image->h, image->w);
    std::swap(image->h_stride, image->w_stride);
  }
  std::swap(g.vertical, g.horizontal);
  return g;
}

/// The same of rows.
inline ConvGeometry row_phase_of(const ConvGeometry& g, std::int64_t phase) noexcept {
  return turned(phase_of(turned(g), phase));
}

inline bool has_phases(const ConvGeometry& g) noexcept {
  return goes_by_phases(g.vertical) || goes_by_phases(g.horizontal);
}

/// The first part that for_each_phase gives, of all rows.
inline ConvGeometry first_phase(const ConvGeometry& g) noexcept {
  const ConvGeometry rows = goes_by_phases(g.vertical) ? row_phase_of(g, 0) : g;
  return goes_by_phases(g.horizontal) ? phase_of(rows, 0) : rows;
}

/// Calls f(part, begin, end) for the phases of those axes that have any: output rows [begin, end), counted through all
/// items, become such rows of parts that have no dilation there.
template <typename F>
void for_each_phase(const ConvGeometry& g, std::int64_t begin, std::int64_t end, F f) {
  const auto columns_of = [&](const ConvGeometry& rows, std::int64_t first, std::int64_t last) {
    if (!goes_by_phases(g.horizontal)) return f(rows, first, last);
    const std::int64_t phases = std::min(g.horizontal.dilation, g.y.w);
    for (std::int64_t phase = 0; phase < phases; ++phase) f(phase_of(rows, phase), first, last);
  };
  if (!goes_by_phases(g.vertical)) return columns_of(g, begin, end);
  const std::int64_t step = g.vertical.dilation;
  const std::int64_t phases = std::min(g.vertical.dilation, g.y.h);
  for (std::int64_t row = begin, next; row < end; row = next) {
    const std::int64_t n = row / g.y.h;
    const std::int64_t item = n * g.y.h;
    next = std::min(end, item + g.y.h);
    for (std::int64_t phase = 0; phase < phases; ++phase) {
      const ConvGeometry rows = row_phase_of(g, phase);
      const auto before = [&](std::int64_t end_row) { return (end_row - item - phase + step - 1) / step; };
      const std::int64_t first = n * rows.y.h + before(row);
      const std::int64_t last = n * rows.y.h + before(next);
      if (first < last) columns_of(rows, first, last);
    }
  }
}

}  // namespace bantam::ops::depthwise
