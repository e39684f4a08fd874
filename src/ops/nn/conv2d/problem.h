// What the matrix-product kernels of conv2d share: the sizes of the implicit product and the gathering of windows.
// Freestanding.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/common/parallel.h"
#include "ops/common/short_copy.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::conv2d {

/// Everything about one convolution that does not depend on the pixel.
struct Problem {
  ConvGeometry g;
  std::int64_t group_inputs = 0;
  std::int64_t group_outputs = 0;
  std::int64_t k = 0;
  std::int64_t row = 0;        ///< of k, the numbers of a row of a window, and what may lie between it and the next
  bool taps_touch = false;     ///< neighbouring taps of a row are contiguous: one segment per kernel row
  bool always_inside = false;  ///< 1x1 without padding: no window leaves the image
  bool one_run = false;        ///< pointwise, and all pixels of x and y are equally far apart
  bool y_uniform = false;      ///< all pixels of y are equally far apart
};

inline bool uniform_pixels(const ImageShape& s) {
  return (s.h == 1 || s.h_stride == s.w * s.w_stride) && (s.n == 1 || s.n_stride == s.h * s.w * s.w_stride);
}

inline Problem make_problem(const Conv2dParams& params, const TensorDesc& x, const TensorDesc& w, const TensorDesc& y) {
  Problem p;
  p.g = lying(conv_geometry(params, x, y, w.dims[1], w.dims[2]));
  p.group_inputs = w.dims[3];
  p.group_outputs = w.dims[0] / params.groups;
  p.row = p.g.horizontal.kernel * p.group_inputs;
  p.k = p.g.vertical.kernel * p.row;
  p.taps_touch = p.g.horizontal.dilation == 1 && p.g.x.w_stride == p.group_inputs;
  p.always_inside = p.g.vertical.kernel == 1 && p.g.horizontal.kernel == 1 && params.pad_top == 0 &&
                    params.pad_left == 0 && params.pad_bottom == 0 && params.pad_right == 0;
  p.y_uniform = uniform_pixels(p.g.y);
  // Without padding or strides, x has the pixels of y.
  p.one_run = p.always_inside && params.stride_h == 1 && params.stride_w == 1 && p.y_uniform && uniform_pixels(p.g.x);
  return p;
}

/// Would the weights not stay in the second-level cache from one tile of pixels to the next?
inline bool has_many_weights(const Problem& p) {
  constexpr std::int64_t kManyWeights = 65536;
  return p.k * p.group_outputs >= kManyWeights;
}

/// The pixels that are worth a thread: some microseconds of work. They are cut into whole tiles.
inline Grain product_grain(const Problem& p) {
  constexpr std::int64_t kWork = 500'000;
  const std::int64_t tile_work = std::max<std::int64_t>(p.k * p.group_outputs * p.g.groups * gemm::kMaxTileRows, 1);
  return {gemm::kMaxTileRows * ((kWork + tile_work - 1) / tile_work), gemm::kMaxTileRows};
}

struct Pixel {
  std::int64_t n = 0;
  std::int64_t y = 0;
  std::int64_t x = 0;
};

inline Pixel pixel_at(const ImageShape& shape, std::int64_t index) {
  const std::int64_t row = index / shape.w;
  return {row / shape.h, row % shape.h, index % shape.w};
}

/// Copies `pieces` of n numbers each, which begin so far apart.
template <typename Number>
void copy_numbers(std::int64_t pieces, std::int64_t n, const Number* from, std::int64_t from_step, Number* to,
                  std::int64_t to_step) {
  constexpr auto kNumber = static_cast<std::int64_t>(sizeof(Number));
  copy_pieces(pieces, n * kNumber, reinterpret_cast<const std::uint8_t*>(from), from_step * kNumber,
              reinterpret_cast<std::uint8_t*>(to), to_step * kNumber);
}

/// gather_window of all numbers of a window whose taps touch: most of them lie inside, or in few rows.
template <typename Number>
void gather_whole_window(const Problem& p, const Number* x, const Pixel& at, Number* to, Number outside_image) {
  const ConvGeometry& g = p.g;
  const std::int64_t y0 = window_origin(g.vertical, at.y);
  const std::int64_t x0 = window_origin(g.horizontal, at.x);
  const TapRange rows = taps_inside(g.vertical, y0, 0, g.x.h);
  const TapRange columns = taps_inside(g.horizontal, x0, 0, g.x.w);
  std::fill_n(to, p.k, outside_image);
  if (columns.size() == 0 || rows.size() == 0) return;
  const std::int64_t before = columns.first * p.group_inputs;
  const std::int64_t first = y0 + static_cast<std::int64_t>(rows.first) * g.vertical.dilation;
  copy_numbers(rows.size(), columns.size() * p.group_inputs, x + (g.x.offset(at.n, first, x0) + before),
               g.vertical.dilation * g.x.h_stride, to + rows.first * p.row + before, p.row);
}

/// Writes numbers [first, first + count) of the window of output pixel `at`, in the order of k, `outside_image` for
/// padding and between rows. `x` is the first channel of the group.
template <typename Number>
void gather_window(const Problem& p, const Number* x, const Pixel& at, std::int64_t first, std::int64_t count,
                   Number* to, Number outside_image) {
  if (p.taps_touch && count == p.k) return gather_whole_window(p, x, at, to, outside_image);
  const ConvGeometry& g = p.g;
  const std::int64_t y0 = window_origin(g.vertical, at.y);
  const std::int64_t x0 = window_origin(g.horizontal, at.x);
  const TapRange columns = taps_inside(g.horizontal, x0, 0, g.x.w);
  const std::int64_t before = columns.first * p.group_inputs;
  const std::int64_t inside_end = before + columns.size() * p.group_inputs;
  const std::int64_t row = p.row;
  const std::int64_t step = g.x.w_stride * g.horizontal.dilation;
  for (std::int64_t ky = first == 0 ? 0 : first / row; ky * row < first + count; ++ky) {
    // The part of this kernel row that is asked for, and of it what lies inside the image.
    const std::int64_t low = std::max<std::int64_t>(first - ky * row, 0);
    const std::int64_t high = std::min(first + count - ky * row, row);
    const std::int64_t iy = y0 + ky * g.vertical.dilation;
    const bool outside = iy < 0 || iy >= g.x.h || columns.size() == 0;
    const std::int64_t begin = outside ? high : std::clamp(before, low, high);
    const std::int64_t end = outside ? high : std::clamp(inside_end, low, high);
    std::fill_n(to, begin - low, outside_image);
    if (begin < end && p.taps_touch) {
      copy_numbers(1, end - begin, x + (g.x.offset(at.n, iy, x0) + begin), 0, to + begin - low, 0);
    } else if (begin < end && begin % p.group_inputs == 0 && end % p.group_inputs == 0) {
      copy_numbers((end - begin) / p.group_inputs, p.group_inputs,
                   x + (g.x.offset(at.n, iy, x0) + begin / p.group_inputs * step), step, to + begin - low,
                   p.group_inputs);
    } else if (begin < end) {
      for (std::int64_t kx = begin / p.group_inputs; kx * p.group_inputs < end; ++kx) {
        const std::int64_t tap_begin = std::max(begin, kx * p.group_inputs);
        const std::int64_t tap_end = std::min(end, (kx + 1) * p.group_inputs);
        copy_numbers(1, tap_end - tap_begin,
                     x + (g.x.offset(at.n, iy, x0) + kx * step + tap_begin - kx * p.group_inputs), 0,
                     to + tap_begin - low, 0);
      }
    }
    std::fill_n(to + end - low, high - end, outside_image);
    to += high - low;
  }
}

}  // namespace bantam::ops::conv2d
