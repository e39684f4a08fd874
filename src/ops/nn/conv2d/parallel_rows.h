// Threads that share the results of a convolution by rows or, of images of few rows such as sounds, by columns.
// Freestanding; nothing is allocated.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/geometry.h"

namespace bantam::ops {

/// Columns [begin, end) of all rows of results, as a convolution of its own. Requires that the window of column `begin`
/// begins before the image's end.
inline ConvGeometry with_columns(const ConvGeometry& g, std::int64_t begin, std::int64_t end) noexcept {
  ConvGeometry part = g;
  const std::int64_t origin = window_origin(g.horizontal, begin);
  const std::int64_t skipped = std::max<std::int64_t>(origin, 0);
  part.x.first += skipped * g.x.w_stride;
  part.x.w = static_cast<std::int32_t>(g.x.w - skipped);
  part.horizontal.pad_before = static_cast<std::int32_t>(skipped - origin);
  part.y.first += begin * g.y.w_stride;
  part.y.w = static_cast<std::int32_t>(end - begin);
  return part;
}

/// Calls f(geometry, begin, end) for rows of results, counted through all items, that make up all of `g`; `pixels` are
/// worth a thread, and columns are cut at multiples of its step.
template <typename F>
void parallel_rows(const Threads& threads, const ConvGeometry& g, Grain pixels, F f) {
  const std::int64_t rows = static_cast<std::int64_t>(g.y.n) * g.y.h;
  const std::int64_t columns = g.y.w;
  if (rows == 0 || columns == 0) return;
  const bool few_rows = rows < 2 * static_cast<std::int64_t>(threads.count) && rows < columns;
  if (few_rows && window_origin(g.horizontal, columns - 1) < g.x.w) {
    parallel_ranges(threads, columns, {(pixels.least + rows - 1) / rows, pixels.step},
                    [&](std::int64_t begin, std::int64_t end) { f(with_columns(g, begin, end), 0, rows); });
  } else {
    parallel_ranges(threads, rows, {(pixels.least + columns - 1) / columns, 1},
                    [&](std::int64_t begin, std::int64_t end) { f(g, begin, end); });
  }
}

}  // namespace bantam::ops
