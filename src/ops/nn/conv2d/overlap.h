// Results that overwrite their operand while it is read: how far ahead of the image a sliding window's result must
// begin. Used by the kernels of convolutions and pooling, which go through the output pixels in the order of memory.
// Asked by the compiler and again by the verifier of packages. Freestanding, pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/shape.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/op.h"

namespace bantam::ops {

namespace overlap_detail {

/// The first element along one axis that window `position` or a later one may read, clamped to the image.
inline std::int64_t first_read(const WindowAxis& axis, std::int64_t extent, std::int64_t position) noexcept {
  return std::clamp<std::int64_t>(window_origin(axis, position), 0, extent);
}

/// The largest position * `written` - first_read(position + later) * `read` over all positions. Between the bends of
/// first_read it is linear, so only the ends and the neighbours of the bends are looked at.
inline std::int64_t largest_lag(const WindowAxis& axis, std::int64_t extent, std::int64_t positions, std::int64_t later,
                                std::int64_t written, std::int64_t read) noexcept {
  const std::int64_t bends[] = {axis.pad_before / axis.stride - later,
                                (extent + axis.pad_before) / axis.stride - later};
  std::int64_t largest = INT64_MIN;
  const auto look = [&](std::int64_t position) {
    const std::int64_t at = std::clamp<std::int64_t>(position, 0, positions - 1);
    largest = std::max(largest, at * written - first_read(axis, extent, at + later) * read);
  };
  look(0);
  look(positions - 1);
  for (const std::int64_t bend : bends)
    for (std::int64_t position = bend - 1; position <= bend + 1; ++position) look(position);
  return largest;
}

}  // namespace overlap_detail

/// Footprint::lead_bytes of a kernel that works on `pixels` output pixels at a time, reads nothing before the windows
/// of those and later ones, and writes nothing beyond them. Both images dense and not empty, groups within a pixel.
inline std::int64_t window_lead_bytes(const ConvGeometry& g, std::int64_t x_element, std::int64_t y_element,
                                      std::int64_t pixels) noexcept {
  using overlap_detail::largest_lag;
  const std::int64_t x_pixel = g.x.c * x_element;
  const std::int64_t x_row = g.x.w * x_pixel;
  const std::int64_t y_pixel = g.y.c * y_element;
  const std::int64_t y_row = g.y.w * y_pixel;
  // A pixel or a later one of its row begins to read in the pixel's own rows; those of later rows in the next.
  const std::int64_t same_row = largest_lag(g.vertical, g.x.h, g.y.h, 0, y_row, x_row) +
                                largest_lag(g.horizontal, g.x.w, g.y.w, 0, y_pixel, x_pixel);
  const std::int64_t next_row = largest_lag(g.vertical, g.x.h, g.y.h, 1, y_row, x_row) + (g.y.w - 1) * y_pixel;
  const std::int64_t item = std::max<std::int64_t>(g.y.h * y_row - g.x.h * x_row, 0) * (g.y.n - 1);
  return item + std::max(same_row, next_row) + pixels * y_pixel;
}

/// The same of a kernel that reads all that a row of results needs, and that later ones do not, before it writes the
/// row.
inline std::int64_t row_lead_bytes(const ConvGeometry& g, std::int64_t x_element, std::int64_t y_element) noexcept {
  const std::int64_t x_row = g.x.w * g.x.c * x_element;
  const std::int64_t y_row = g.y.w * g.y.c * y_element;
  // Behind the last row nothing is read, but for the next item.
  const std::int64_t rows = g.y.n == 1 ? g.y.h - 1 : g.y.h;
  if (rows == 0) return 0;
  const std::int64_t item = std::max<std::int64_t>(g.y.h * y_row - g.x.h * x_row, 0) * (g.y.n - 1);
  const std::int64_t lag = overlap_detail::largest_lag(g.vertical, g.x.h, rows, 1, y_row, x_row) + y_row;
  return item + std::max<std::int64_t>(lag, 0);  // beginning behind the image's first byte would save nothing
}

/// May a result overlap its operand at all: with one thread, both dense and not empty?
inline bool can_overlap(const OpCall& call, int threads) noexcept {
  return threads == 1 && call.in(0).is_dense() && call.out().is_dense() && call.in(0).elements() > 0 &&
         call.out().elements() > 0;
}

/// window_lead_bytes for the footprint of `call`: where it saves anything.
inline std::int64_t lead_bytes(const OpCall& call, const ConvGeometry& g, std::int64_t pixels, int threads) noexcept {
  if (!can_overlap(call, threads)) return Footprint::kNoOverlap;
  const std::int64_t lead = window_lead_bytes(g, element_size(call.in(0).type), element_size(call.out().type), pixels);
  return lead < call.out().bytes() ? lead : Footprint::kNoOverlap;
}

/// Does output 0 lie over input 0? Both dense.
inline bool result_overlaps(const Invocation& call) noexcept {
  const auto x = reinterpret_cast<std::uintptr_t>(call.inputs[0].data);
  const auto y = reinterpret_cast<std::uintptr_t>(call.outputs[0].data);
  return x < y + static_cast<std::uintptr_t>(call.out().bytes()) &&
         y < x + static_cast<std::uintptr_t>(call.in(0).bytes());
}

/// How many output pixels from the index-th on a kernel may compute in any order: their results lie over nothing that
/// their windows or later ones read. Where the result overlaps x, a multiple of `least`, for which it has a footprint
/// of window_lead_bytes; the further apart the images, the more.
inline std::int64_t pixels_at_once(const Invocation& call, const ConvGeometry& g, std::int64_t index,
                                   std::int64_t least) noexcept {
  using overlap_detail::first_read;
  if (!result_overlaps(call)) return static_cast<std::int64_t>(g.y.n) * g.y.h * g.y.w - index;
  const std::int64_t row = index / g.y.w;
  const std::int64_t item = row / g.y.h;
  const auto read_from = [&](std::int64_t y_row, std::int64_t y_column) {
    return ((item * g.x.h + first_read(g.vertical, g.x.h, y_row)) * g.x.w + first_read(g.horizontal, g.x.w, y_column)) *
           g.x.c;
  };
  // The window itself, or the first of the next row, which may begin in the same row of the image.
  const std::int64_t first =
      std::min(read_from(row % g.y.h, index % g.y.w), read_from(row % g.y.h + 1, 0)) * element_size(call.in(0).type);
  const std::int64_t y_pixel = g.y.c * element_size(call.out().type);
  const auto read = reinterpret_cast<std::intptr_t>(call.inputs[0].data) + first;
  const auto written = reinterpret_cast<std::intptr_t>(call.outputs[0].data) + index * y_pixel;
  return std::max<std::int64_t>((read - written) / y_pixel / least, 1) * least;
}

/// Calls f(first, last, overlaps) for ranges of output rows that make up [begin, end), counted through all items, from
/// front to back. `overlaps`: results lie over what their windows or later ones read, as window_lead_bytes permits;
/// others may be computed in any order. Where an image shrinks, only its first rows overlap, since they are read faster
/// than they are written over; elsewhere all count as overlapping.
template <typename F>
void for_each_range(const Invocation& call, const ConvGeometry& g, std::int64_t begin, std::int64_t end, F f) {
  if (!result_overlaps(call)) return f(begin, end, false);
  const std::int64_t x_rows = std::int64_t{g.vertical.stride} * g.x.w * g.x.c * element_size(call.in(0).type);
  const std::int64_t y_row = std::int64_t{g.y.w} * g.y.c * element_size(call.out().type);
  if (x_rows <= y_row) return f(begin, end, true);  // the images do not come apart
  constexpr std::int64_t kFewRows = 4;              // fewer by themselves are slower than with those that overlap
  std::int64_t overlapping = begin;
  for (std::int64_t row = begin; row < end;) {
    const std::int64_t left = end - row;
    const std::int64_t rows = std::min(pixels_at_once(call, g, row * g.y.w, 1) / g.y.w, left);
    if (rows < std::min(kFewRows, left)) {
      ++row;
      continue;
    }
    if (overlapping < row) f(overlapping, row, true);
    f(row, row + rows, false);
    row += rows;
    overlapping = row;
  }
  if (overlapping < end) f(overlapping, end, true);
}

}  // namespace bantam::ops
