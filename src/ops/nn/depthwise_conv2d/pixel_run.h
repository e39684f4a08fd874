// The division of an output row into runs of pixels whose windows have the same taps inside the image: the border
// pixels one by one, the interior in one piece. Used by the SIMD kernels. Freestanding.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/geometry.h"

namespace bantam::ops::depthwise {

/// No kernel computes more pixels of a run at once: a result may overlap the operand with that in mind.
inline constexpr int kMaxRunPixels = 4;

/// Channels that kernels of bytes go through at once, for all pixels of a row or some of them.
inline constexpr std::int64_t kByteBlock = 64;

/// Kernel rows, and columns times quads of rows, of the largest windows that are not called large.
inline constexpr std::int32_t kMostWindowRows = 8;
inline constexpr std::int64_t kMostWindowQuads = 16;

/// Windows larger than that, and those of one row.
inline bool is_large_window(const ConvGeometry& g) {
  const std::int32_t rows = g.vertical.kernel;
  const std::int64_t columns = static_cast<std::int64_t>(g.horizontal.kernel - 1) * g.horizontal.dilation + 1;
  return rows == 1 || rows > kMostWindowRows || columns * ((rows + 3) / 4) > kMostWindowQuads;
}

/// Output pixels that kernels of bytes compute at a time where the result overlaps the operand: more of large windows,
/// which share more of a longer run, and of which each block of channels reads what the one before has written over.
inline std::int64_t byte_run_pixels(const ConvGeometry& g) {
  constexpr std::int64_t kLongRunPixels = 16;
  return is_large_window(g) && g.x.c > kByteBlock ? kLongRunPixels : kMaxRunPixels;
}

/// The pixels that are worth a thread: some ten thousand multiply-adds. Whole vectors of them are cut.
inline Grain depthwise_grain(const ConvGeometry& g) {
  constexpr std::int64_t kWork = 50'000;
  const std::int64_t pixel = static_cast<std::int64_t>(g.y.c) * g.vertical.kernel * g.horizontal.kernel;
  return {std::max<std::int64_t>(kWork / std::max<std::int64_t>(pixel, 1), 1), 4 * kMaxRunPixels};
}

/// Some neighbouring output pixels of one row; strides in elements.
template <typename X, typename W = X>
struct PixelRun {
  const X* x = nullptr;         ///< first tap of the first pixel, channel 0
  const W* w = nullptr;         ///< its weights
  std::int64_t x_step = 0;      ///< from one output pixel's window to the next
  std::int64_t row_step = 0;    ///< from one kernel row to the next, in x
  std::int64_t tap_step = 0;    ///< from one tap to the next within a row, in x
  std::int64_t w_row_step = 0;  ///< from one kernel row to the next, in w
  std::int64_t w_tap_step = 0;
  std::int32_t rows = 0;
  std::int32_t taps = 0;
  std::int64_t channels = 0;
};

/// Calls f(run, first output column, pixels) for all pixels of output row oy of item n. w_channels: of the weights, of
/// which g may have some only, from w on.
template <typename X, typename W, typename F>
void for_each_run(const ConvGeometry& g, const X* x, const W* w, std::int64_t w_channels, std::int64_t n,
                  std::int64_t oy, F f) {
  const std::int64_t y0 = window_origin(g.vertical, oy);
  const TapRange rows = taps_inside(g.vertical, y0, 0, g.x.h);
  for (std::int64_t ox = 0; ox < g.y.w;) {
    const std::int64_t x0 = window_origin(g.horizontal, ox);
    const TapRange columns = taps_inside(g.horizontal, x0, 0, g.x.w);
    std::int64_t count = 1;
    if (columns.size() == g.horizontal.kernel) {
      const std::int64_t reach = static_cast<std::int64_t>(g.horizontal.kernel - 1) * g.horizontal.dilation;
      count = std::min<std::int64_t>((g.x.w - 1 - reach - x0) / g.horizontal.stride + 1, g.y.w - ox);
    }
    PixelRun<X, W> run{.x = x,
                       .w = w,
                       .x_step = g.horizontal.stride * g.x.w_stride,
                       .row_step = g.vertical.dilation * g.x.h_stride,
                       .tap_step = g.horizontal.dilation * g.x.w_stride,
                       .w_row_step = g.horizontal.kernel * w_channels,
                       .w_tap_step = w_channels,
                       .channels = g.x.c};
    if (rows.size() > 0 && columns.size() > 0) {
      run.rows = rows.size();
      run.taps = columns.size();
      run.x += g.x.offset(n, y0 + static_cast<std::int64_t>(rows.first) * g.vertical.dilation,
                          x0 + static_cast<std::int64_t>(columns.first) * g.horizontal.dilation);
      run.w += rows.first * run.w_row_step + columns.first * run.w_tap_step;
    }
    f(run, ox, count);
    ox += count;
  }
}

/// The same of all channels.
template <typename X, typename W, typename F>
void for_each_run(const ConvGeometry& g, const X* x, const W* w, std::int64_t n, std::int64_t oy, F f) {
  for_each_run(g, x, w, g.x.c, n, oy, f);
}

}  // namespace bantam::ops::depthwise
