// depthwise_conv2d in f32 with multiplier 1: vectors run over channels, and several neighbouring output pixels share
// the weights, and for common kernels also the pixels, that were loaded. Taps outside the image are skipped. One vector
// of channels is computed for a band of rows before the next, so that the rows that windows share stay in the
// first-level cache; where the result overwrites the image, and with AVX2, all channels of a few pixels at a time. With
// AVX-512, 3x3 windows are computed in strips from top to bottom, which read a row of the image once for three of the
// result: pixels whose channels are a power of two leave the first-level cache before they are read again. Wide windows
// are gone through in chunks of taps, whose weights stay in registers beside the sums of a tile of pixels: for 80
// multiply-adds of 16 pixels and five taps 25 vectors are loaded, where a tap at a time takes 90. Dilated windows go
// phase by phase (phases.h), where they share columns like those without dilation; windows of one column share rows of
// the image in the same way, with rows and columns exchanged. Images of few channels have a way of their own
// (few_channels_f32_simd-inl.h).
#include <algorithm>

#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/conv2d/parallel_rows.h"
#include "ops/nn/depthwise_conv2d/float_problem.h"
#include "ops/nn/depthwise_conv2d/kernels.h"
#include "ops/nn/depthwise_conv2d/phases.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/depthwise_conv2d/depthwise_conv2d_f32_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/clamped_store_simd-inl.h"
#include "ops/nn/depthwise_conv2d/few_channels_f32_simd-inl.h"
#include "ops/nn/depthwise_conv2d/strips_f32_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::ClampedStore;
using ops::HWY_NAMESPACE::in_register;
using ops::HWY_NAMESPACE::unroll;

using Pixels = PixelRun<float>;

template <class DF>
constexpr auto kLanesOf = static_cast<std::int64_t>(hn::MaxLanes(DF()));

/// Vectors of neighbouring channels that are computed together: a cache line of each pixel, where registers suffice.
/// Pixels whose channels are a power of two lie in so few sets of the first-level cache that a line which is read again
/// for its second half is gone.
#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
constexpr bool kTakesLines = true;
#else
constexpr bool kTakesLines = false;
#endif
template <int kTaps, int kLanes>
constexpr int kVectorsAtOnce = kTakesLines&& kTaps == 3 && kLanes == 8 ? 2 : 1;

struct Output {
  float* y;           ///< of the first pixel, channel 0
  std::int64_t step;  ///< from one output pixel to the next
  const float* bias;  ///< may be null
};

/// One vector of channels of kPixels pixels, any kernel.
template <int kPixels, class DF>
HWY_INLINE void accumulate(DF d, const Pixels& p, std::int64_t c, hn::Vec<DF> (&sums)[kPixels][1]) {
  for (std::int32_t ky = 0; ky < p.rows; ++ky) {
    const float* x = p.x + ky * p.row_step + c;
    const float* w = p.w + ky * p.w_row_step + c;
    for (std::int32_t kx = 0; kx < p.taps; ++kx, x += p.tap_step, w += p.channels) {
      const auto weight = in_register(hn::LoadU(d, w));
      unroll<kPixels>([&](auto i)
                          HWY_ATTR { sums[i][0] = hn::MulAdd(hn::LoadU(d, x + i * p.x_step), weight, sums[i][0]); });
    }
  }
}

/// Row ky of the weights of kVectors vectors of channels.
template <int kTaps, int kVectors, class DF>
HWY_INLINE void load_weights(DF d, const Pixels& p, std::int32_t ky, std::int64_t c,
                             hn::Vec<DF> (&weights)[kTaps][kVectors]) {
  const float* w = p.w + ky * p.w_row_step + c;
  unroll<kTaps>([&](auto kx) HWY_ATTR {
    unroll<kVectors>(
        [&](auto v) HWY_ATTR { weights[kx][v] = in_register(hn::LoadU(d, w + kx * p.channels + v * kLanesOf<DF>)); });
  });
}

/// Adds what column kColumn of those that kPixels windows read, which lies at `x`, gives to each of them.
template <int kPixels, int kStride, int kColumn, int kTaps, int kVectors, class DF>
HWY_INLINE void accumulate_column(DF d, const float* x, const hn::Vec<DF> (&weights)[kTaps][kVectors],
                                  hn::Vec<DF> (&sums)[kPixels][kVectors]) {
  unroll<kVectors>([&](auto v) HWY_ATTR {
    const auto pixel = in_register(hn::LoadU(d, x + v * kLanesOf<DF>));
    unroll<kTaps>([&](auto kx) HWY_ATTR {
      constexpr int kOffset = kColumn - kx;
      if constexpr (kOffset >= 0 && kOffset % kStride == 0 && kOffset / kStride < kPixels)
        sums[kOffset / kStride][v] = hn::MulAdd(pixel, weights[kx][v], sums[kOffset / kStride][v]);
    });
  });
}

/// The same of kVectors vectors, for kernels of kTaps neighbouring columns and a stride of kStride: every pixel is
/// loaded once per row.
template <int kPixels, int kTaps, int kStride, int kVectors, class DF>
HWY_INLINE void accumulate_sharing(DF d, const Pixels& p, std::int64_t c, hn::Vec<DF> (&sums)[kPixels][kVectors]) {
  constexpr int kLoads = (kPixels - 1) * kStride + kTaps;
  for (std::int32_t ky = 0; ky < p.rows; ++ky) {
    const float* x = p.x + ky * p.row_step + c;
    hn::Vec<DF> weights[kTaps][kVectors];
    load_weights(d, p, ky, c, weights);
    unroll<kLoads>([&](auto l)
                       HWY_ATTR { accumulate_column<kPixels, kStride, l>(d, x + l * p.tap_step, weights, sums); });
  }
}

template <int kPixels, int kVectors, class DF>
HWY_INLINE void begin_sums(DF d, const float* bias, std::int64_t c, hn::Vec<DF> (&sums)[kPixels][kVectors]) {
  unroll<kVectors>([&](auto v) HWY_ATTR {
    const auto start = bias != nullptr ? hn::LoadU(d, bias + c + v * kLanesOf<DF>) : hn::Zero(d);
    unroll<kPixels>([&](auto i) HWY_ATTR { sums[i][v] = start; });
  });
}

/// The same where not all columns lie inside the image; p.x is at column 0.
template <int kPixels, int kTaps, int kStride, int kVectors, class DF>
HWY_INLINE void accumulate_inside(DF d, const Pixels& p, const Columns& columns, std::int64_t c,
                                  hn::Vec<DF> (&sums)[kPixels][kVectors]) {
  constexpr int kLoads = (kPixels - 1) * kStride + kTaps;
  for (std::int32_t ky = 0; ky < p.rows; ++ky) {
    const float* x = p.x + ky * p.row_step + c;
    hn::Vec<DF> weights[kTaps][kVectors];
    load_weights(d, p, ky, c, weights);
    unroll<kLoads>([&](auto l) HWY_ATTR {
      if (l < columns.inside.first || l >= columns.inside.last) return;
      accumulate_column<kPixels, kStride, l>(d, x + (columns.origin + l) * p.tap_step, weights, sums);
    });
  }
}

/// The kVectors vectors of channels from c on of kPixels pixels. kTaps 0: any kernel.
template <int kPixels, int kTaps, int kStride, int kVectors, int kLanes>
HWY_INLINE void convolve_pixels(const Pixels& p, const Output& out, std::int64_t c, const ClampedStore& store) {
  const hn::CappedTag<float, kLanes> d;
  hn::Vec<decltype(d)> sums[kPixels][kVectors];
  begin_sums(d, out.bias, c, sums);
  if constexpr (kTaps > 0) {
    accumulate_sharing<kPixels, kTaps, kStride>(d, p, c, sums);
  } else {
    accumulate<kPixels>(d, p, c, sums);
  }
  unroll<kPixels>([&](auto i) HWY_ATTR {
    unroll<kVectors>([&](auto v)
                         HWY_ATTR { store(d, sums[i][v], out.y + i * out.step + c + v * kLanesOf<decltype(d)>); });
  });
}

/// Channels [first, last), at least a vector.
struct Channels {
  std::int64_t first;
  std::int64_t last;
};

/// Calls f(c, vectors), a constant, for all vectors of these channels, `most` at once; the last vector may overlap the
/// one before, which writes equal values twice.
template <int kMost, int kLanes, class F>
HWY_INLINE void for_vectors(const Channels& channels, F f) {
  constexpr auto kStep = kLanesOf<hn::CappedTag<float, kLanes>>;
  std::int64_t c = channels.first;
  if constexpr (kMost > 1)
    for (; c + kMost * kStep <= channels.last; c += kMost * kStep) f(c, std::integral_constant<int, kMost>());
  for (; c < channels.last; c += kStep) f(std::min(c, channels.last - kStep), std::integral_constant<int, 1>());
}

/// All vectors of these channels of kPixels pixels.
template <int kPixels, int kTaps, int kStride, int kLanes>
HWY_INLINE void convolve_channels(const Pixels& p, const Output& out, const Channels& channels,
                                  const ClampedStore& store) {
  for_vectors<kVectorsAtOnce<kTaps, kLanes>, kLanes>(channels, [&](std::int64_t c, auto vectors) HWY_ATTR {
    convolve_pixels<kPixels, kTaps, kStride, vectors, kLanes>(p, out, c, store);
  });
}

/// Pixels of one vector that share what was loaded, where there are so many.
constexpr int kWidePixels = 8;

/// `count` pixels, a multiple of kMaxRunPixels unless kTaps is 0. `separate`: no result may be computed twice, because
/// it overwrites the image.
template <int kTaps, int kStride, int kLanes>
HWY_INLINE void convolve_run(Pixels p, Output out, std::int64_t count, const Channels& channels, bool separate,
                             const ClampedStore& store) {
  const auto advance = [&](std::int64_t n) HWY_ATTR {
    p.x += n * p.x_step;
    out.y += n * out.step;
    count -= n;
  };
  const bool twice = kTaps == 0 && count >= kMaxRunPixels && !separate;
  if constexpr (kVectorsAtOnce<kTaps, kLanes> == 1)
    while (count >= kWidePixels && !separate) {
      convolve_channels<kWidePixels, kTaps, kStride, kLanes>(p, out, channels, store);
      advance(kWidePixels);
    }
  while (count >= kMaxRunPixels) {
    convolve_channels<kMaxRunPixels, kTaps, kStride, kLanes>(p, out, channels, store);
    advance(kMaxRunPixels);
  }
  if constexpr (kTaps == 0) {
    if (count > 1 && twice) {
      advance(count - kMaxRunPixels);
      convolve_channels<kMaxRunPixels, kTaps, kStride, kLanes>(p, out, channels, store);
      return;
    }
    while (count > 0) {
      convolve_channels<1, kTaps, 1, kLanes>(p, out, channels, store);
      advance(1);
    }
  }
}

/// Output column ox of a row, any kernel; not all taps need lie inside the image.
template <int kLanes>
void convolve_border(const FloatProblem& problem, Pixels p, std::int64_t ox, float* y, const Channels& channels,
                     const ClampedStore& store) {
  const ConvGeometry& g = problem.g;
  const std::int64_t x0 = window_origin(g.horizontal, ox);
  const TapRange columns = taps_inside(g.horizontal, x0, 0, g.x.w);
  p.taps = columns.size();
  if (p.taps == 0) p.rows = 0;
  if (p.rows > 0) {
    p.x += (x0 + static_cast<std::int64_t>(columns.first) * g.horizontal.dilation) * g.x.w_stride;
    p.w += columns.first * p.channels;
  }
  convolve_channels<1, 0, 1, kLanes>(p, {y + ox * g.y.w_stride, g.y.w_stride, problem.bias}, channels, store);
}

/// The same of `count` <= kMaxRunPixels columns from ox on and a kernel of kTaps neighbouring columns.
template <int kTaps, int kStride, int kLanes>
HWY_NOINLINE void convolve_borders(const FloatProblem& problem, const Pixels& p, std::int64_t ox, std::int64_t count,
                                   float* y, const Channels& channels, const ClampedStore& store) {
  const hn::CappedTag<float, kLanes> d;
  constexpr std::int64_t kLoads = (kMaxRunPixels - 1) * kStride + kTaps;
  const ConvGeometry& g = problem.g;
  const Columns columns = columns_of(g, ox, std::min((count - 1) * kStride + kTaps, kLoads));
  y += ox * g.y.w_stride;
  for_vectors<kVectorsAtOnce<kTaps, kLanes>, kLanes>(channels, [&](std::int64_t c, auto vectors) HWY_ATTR {
    hn::Vec<decltype(d)> sums[kMaxRunPixels][vectors];
    begin_sums(d, problem.bias, c, sums);
    accumulate_inside<kMaxRunPixels, kTaps, kStride>(d, p, columns, c, sums);
    unroll<kMaxRunPixels>([&](auto i) HWY_ATTR {
      if (i >= count) return;
      unroll<vectors>([&](auto v)
                          HWY_ATTR { store(d, sums[i][v], y + i * g.y.w_stride + c + v * kLanesOf<decltype(d)>); });
    });
  });
}

/// What windows of output row oy of item n read: x at column 0 of the first row inside the image.
inline Pixels pixels_of_row(const FloatProblem& problem, std::int64_t n, std::int64_t oy) {
  const ConvGeometry& g = problem.g;
  const std::int64_t y0 = window_origin(g.vertical, oy);
  const TapRange rows = taps_inside(g.vertical, y0, 0, g.x.h);
  Pixels row{.x = problem.x,
             .w = problem.w,
             .x_step = g.horizontal.stride * g.x.w_stride,
             .row_step = g.vertical.dilation * g.x.h_stride,
             .tap_step = g.horizontal.dilation * g.x.w_stride,
             .w_row_step = static_cast<std::int64_t>(g.horizontal.kernel) * g.x.c,
             .rows = rows.size(),
             .taps = g.horizontal.kernel,
             .channels = g.x.c};
  if (rows.size() > 0) {
    row.x += g.x.offset(n, y0 + static_cast<std::int64_t>(rows.first) * g.vertical.dilation, 0);
    row.w += rows.first * row.w_row_step;
  }
  return row;
}

/// Output row oy of item n, from left to right, these channels of a few pixels at a time.
template <int kTaps, int kStride, int kLanes>
HWY_NOINLINE void convolve_row(const FloatProblem& problem, std::int64_t n, std::int64_t oy, const Channels& channels,
                               const ClampedStore& store) {
  const ConvGeometry& g = problem.g;
  const Pixels row = pixels_of_row(problem, n, oy);
  float* y = problem.y + g.y.offset(n, oy, 0);
  const std::int64_t first = std::clamp<std::int64_t>(problem.inside_first, 0, g.y.w);
  const std::int64_t last = std::clamp<std::int64_t>(problem.inside_last, first, g.y.w);
  std::int64_t ox = 0;
  const auto convolve_until = [&](std::int64_t end) HWY_ATTR {
    if constexpr (kTaps == 0) {
      for (; ox < end; ++ox) convolve_border<kLanes>(problem, row, ox, y, channels, store);
    } else {
      while (ox < end) {
        const std::int64_t count = std::min<std::int64_t>(g.y.w - ox, kMaxRunPixels);
        convolve_borders<kTaps, kStride, kLanes>(problem, row, ox, count, y, channels, store);
        ox += count;
      }
    }
  };
  convolve_until(first);
  std::int64_t run_pixels = std::max<std::int64_t>(last - ox, 0);
  if (kTaps > 0) run_pixels -= run_pixels % kMaxRunPixels;
  if (run_pixels > 0) {
    Pixels run = row;
    if (run.rows > 0) run.x += window_origin(g.horizontal, ox) * g.x.w_stride;
    convolve_run<kTaps, kStride, kLanes>(run, {y + ox * g.y.w_stride, g.y.w_stride, problem.bias}, run_pixels, channels,
                                         problem.separate, store);
    ox += run_pixels;
  }
  convolve_until(g.y.w);
}

/// Taps of a row of a window that are gone through at once: their weights have room beside the sums of a tile.
constexpr int kChunk = 5;

/// Output columns of a tile, whose sums stay in registers: with the weights of a chunk and a pixel as many as there
/// are.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr int kTilePixels = 16;
#else
constexpr int kTilePixels = 8;
#endif

/// The same place, in a register: of many places a step apart gcc would keep the distance of each in memory.
HWY_INLINE const float* place_in_register(const float* place) {
#if HWY_COMPILER_GCC && !HWY_COMPILER_CLANG
  asm("" : "+r"(place));
#endif
  return place;
}

/// Adds what kTaps neighbouring taps give to kPixels windows: every column that they read is loaded once. `x` is at the
/// first column; only those `inside` are read, unless kWhole.
template <int kTaps, int kStride, bool kWhole, int kPixels, class DF>
HWY_INLINE void accumulate_chunk(DF d, const float* x, std::int64_t x_step, const float* w, std::int64_t w_step,
                                 const TapRange& inside, hn::Vec<DF> (&sums)[kPixels][1]) {
  hn::Vec<DF> weights[kTaps];
  unroll<kTaps>([&](auto kx) __attribute__((always_inline))
                HWY_ATTR { weights[kx] = in_register(hn::LoadU(d, w + kx * w_step)); });
  // Not accumulate_column: what is asked to be in line here would cost registers there.
  unroll<(kPixels - 1) * kStride + kTaps>([&](auto l) __attribute__((always_inline)) HWY_ATTR {
    if (kWhole || (l >= inside.first && l < inside.last)) {
      const auto pixel = in_register(hn::LoadU(d, x));
      unroll<kTaps>([&](auto kx) __attribute__((always_inline)) HWY_ATTR {
        constexpr int kOffset = l - kx;
        if constexpr (kOffset >= 0 && kOffset % kStride == 0 && kOffset / kStride < kPixels)
          sums[kOffset / kStride][0] = hn::MulAdd(pixel, weights[kx], sums[kOffset / kStride][0]);
      });
    }
    x = place_in_register(x + x_step);
  });
}

/// Neighbouring windows of one row.
struct Tile {
  std::int64_t origin;  ///< the column at which the first begins; may lie outside the image
  std::int64_t count;
  std::int64_t width;  ///< of the image
};

/// The same of the taps from `tap` on of a tile's windows; x is at column 0 of the image, w at tap 0.
template <int kTaps, int kStride, int kPixels, class DF>
HWY_INLINE void accumulate_taps(DF d, const Tile& tile, std::int32_t tap, const float* x, std::int64_t x_step,
                                const float* w, std::int64_t w_step, hn::Vec<DF> (&sums)[kPixels][1]) {
  const std::int64_t first = tile.origin + tap;
  const std::int64_t last = std::min(tile.width, first + (tile.count - 1) * kStride + kTaps);
  const TapRange inside{static_cast<std::int32_t>(std::max<std::int64_t>(-first, 0)),
                        static_cast<std::int32_t>(last - first)};
  x += first * x_step;
  w += tap * w_step;
  if (inside.size() == (kPixels - 1) * kStride + kTaps) {
    accumulate_chunk<kTaps, kStride, true>(d, x, x_step, w, w_step, inside, sums);
  } else if (inside.size() > 0) {
    accumulate_chunk<kTaps, kStride, false>(d, x, x_step, w, w_step, inside, sums);
  }
}

/// Goes through all rows of the windows, and all taps of each, in chunks of kTaps and then of one less.
template <int kTaps, int kStride, int kPixels, class DF>
HWY_INLINE void accumulate_tile(DF d, const Pixels& p, const Tile& tile, std::int64_t c,
                                hn::Vec<DF> (&sums)[kPixels][1]) {
  const std::int32_t chunks = (p.taps + kTaps - 1) / kTaps;
  const std::int32_t in_long_chunks = (p.taps - chunks * (kTaps - 1)) * kTaps;
  for (std::int32_t ky = 0; ky < p.rows; ++ky) {
    const float* x = p.x + ky * p.row_step + c;
    const float* w = p.w + ky * p.w_row_step + c;
    std::int32_t tap = 0;
    for (; tap < in_long_chunks; tap += kTaps)
      accumulate_taps<kTaps, kStride>(d, tile, tap, x, p.tap_step, w, p.channels, sums);
    for (; tap < p.taps; tap += kTaps - 1)
      accumulate_taps<kTaps - 1, kStride>(d, tile, tap, x, p.tap_step, w, p.channels, sums);
  }
}

/// The `count` output columns from ox on, these channels.
template <int kTaps, int kStride, int kPixels, int kLanes>
HWY_NOINLINE void convolve_tile(const FloatProblem& problem, const Pixels& row, std::int64_t ox, std::int64_t count,
                                float* y, const Channels& channels, const ClampedStore& store) {
  const hn::CappedTag<float, kLanes> d;
  const ConvGeometry& g = problem.g;
  const Tile tile{window_origin(g.horizontal, ox), count, g.x.w};
  y += ox * g.y.w_stride;
  for_vectors<1, kLanes>(
      channels, [&](std::int64_t c, auto) __attribute__((always_inline)) HWY_ATTR {
        hn::Vec<decltype(d)> sums[kPixels][1];
        begin_sums(d, problem.bias, c, sums);
        accumulate_tile<kTaps, kStride>(d, row, tile, c, sums);
        unroll<kPixels>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
          if (i < count) store(d, sums[i][0], y + i * g.y.w_stride + c);
        });
      });
}

/// Output row oy of item n in tiles of kPixels columns. Where the last tile is not whole, it begins earlier and
/// computes some results twice, unless the result overwrites the image.
template <int kTaps, int kStride, int kPixels, int kLanes>
void convolve_tiles(const FloatProblem& problem, std::int64_t n, std::int64_t oy, const Channels& channels,
                    const ClampedStore& store) {
  const ConvGeometry& g = problem.g;
  const Pixels row = pixels_of_row(problem, n, oy);
  float* y = problem.y + g.y.offset(n, oy, 0);
  const std::int64_t latest = problem.separate ? g.y.w : std::max<std::int64_t>(g.y.w - kPixels, 0);
  for (std::int64_t i = 0; i < g.y.w; i += kPixels) {
    const std::int64_t ox = std::min(i, latest);
    convolve_tile<kTaps, kStride, kPixels, kLanes>(problem, row, ox, std::min<std::int64_t>(kPixels, g.y.w - ox), y,
                                                   channels, store);
  }
}

/// Output rows [oy, oy + rows) of item n, all channels of a strip before the next; in the order of memory where the
/// result overwrites the image.
template <int kLanes>
void convolve_strips(const FloatProblem& problem, std::int64_t n, std::int64_t oy, std::int64_t rows,
                     const ClampedStore& store) {
  const ConvGeometry& g = problem.g;
  const hn::CappedTag<float, kLanes> d;
  const StripWidths widths(g);
  const std::int64_t at_once = problem.separate && widths.count > 1 ? 1 : rows;
  for (std::int64_t row = oy; row < oy + rows; row += at_once)
    for (std::int64_t i = 0, ox = 0; i < widths.count; ox += widths.of(i), ++i) {
      const Strip strip{.x = problem.x + g.x.offset(n, 0, 0),
                        .y = problem.y + g.y.offset(n, row, ox),
                        .first_row = window_origin(g.vertical, row),
                        .rows = at_once,
                        .origin = window_origin(g.horizontal, ox)};
      strip_function<decltype(d)>(g, strip, widths.of(i), problem.separate)(d, problem, strip, store);
    }
}

using RowFunction = void (*)(const FloatProblem&, std::int64_t, std::int64_t, const Channels&, const ClampedStore&);

constexpr int kFullLanes = static_cast<int>(hn::MaxLanes(hn::CappedTag<float, 16>()));
/// Whether windows are so wide that their taps are better gone through in chunks than one by one or all at once.
bool suits_tiles(const FloatProblem& problem) {
  const WindowAxis& axis = problem.g.horizontal;
  if (axis.dilation != 1 || axis.stride > 2) return false;
  // All seven weights at once leave wide rows nothing to gain; the edges of small tiles cost what a stride leaves.
  if (axis.kernel == 7 && axis.stride == 1) return problem.g.y.w <= kTilePixels && !problem.separate;
  if (axis.kernel <= 7 && axis.stride == 2 && kTilePixels < 16) return false;
  return axis.kernel > 5;
}

/// Tiles of as many pixels as suit the row; neighbouring taps, three or more.
template <int kStride, int kLanes>
RowFunction tiles_of_kernel(const FloatProblem& problem) {
  const WindowAxis& axis = problem.g.horizontal;
  const auto with_taps = [&](auto pixels) -> RowFunction {
    const std::int32_t chunks = (axis.kernel + kChunk - 1) / kChunk;
    const std::int32_t taps = (axis.kernel + chunks - 1) / chunks;
    if (taps == 3) return convolve_tiles<3, kStride, pixels, kLanes>;
    if (taps == 4) return convolve_tiles<4, kStride, pixels, kLanes>;
    return convolve_tiles<5, kStride, pixels, kLanes>;
  };
  if (problem.separate) return with_taps(std::integral_constant<int, kMaxRunPixels>());
  return with_taps(std::integral_constant<int, kTilePixels>());
}

template <int kLanes>
RowFunction row_of_kernel(const FloatProblem& problem) {
  const WindowAxis& axis = problem.g.horizontal;
  const auto is = [&](std::int32_t taps, std::int32_t stride) {
    return axis.kernel == taps && axis.stride == stride && axis.dilation == 1;
  };
  if (kLanes == 1) return convolve_row<0, 1, kLanes>;
  if constexpr (kLanes == kFullLanes)
    if (suits_tiles(problem)) {
      if (axis.stride == 1) return tiles_of_kernel<1, kLanes>(problem);
      return tiles_of_kernel<2, kLanes>(problem);
    }
  if (is(3, 1)) return convolve_row<3, 1, kLanes>;
  if (is(3, 2)) return convolve_row<3, 2, kLanes>;
  if (is(5, 1)) return convolve_row<5, 1, kLanes>;
  if (is(5, 2)) return convolve_row<5, 2, kLanes>;
  if (is(7, 1)) return convolve_row<7, 1, kLanes>;
  return convolve_row<0, 1, kLanes>;
}

/// Of an image that the second-level cache does not hold.
bool is_far(const ConvGeometry& g) {
  constexpr std::int64_t kFloats = 262144;
  return static_cast<std::int64_t>(g.x.h) * g.x.w * g.x.c > kFloats;
}

using StripsFunction = void (*)(const FloatProblem&, std::int64_t, std::int64_t, std::int64_t, const ClampedStore&);

/// Null where rows are computed a few pixels at a time. Of rows that overwrite the image those of two strips only where
/// registers hold strips: elsewhere two vectors of a few pixels use up lines at once. So they do where an image from
/// afar is read with strides.
template <int kLanes>
StripsFunction strips_of_kernel(const FloatProblem& problem) {
  const ConvGeometry& g = problem.g;
  const bool takes = problem.separate ? suits_strips_of_rows(g) && (kTakesStrips || g.y.w <= kMostStrip)
                                      : suits_strips(g) && kTakesStrips && (g.horizontal.stride == 1 || !is_far(g));
  return takes ? convolve_strips<kLanes> : nullptr;
}

struct RowKernel {
  RowFunction function;
  std::int64_t lanes;
  StripsFunction strips = nullptr;
};

/// Vectors of the machine's width, narrower ones for few channels.
RowKernel row_kernel(const FloatProblem& problem) {
  const ConvGeometry& g = problem.g;
  const auto of_lanes = [&](auto lanes) -> RowKernel { return {row_of_kernel<lanes>(problem), lanes}; };
  if (g.x.c >= kFullLanes)
    return {row_of_kernel<kFullLanes>(problem), kFullLanes, strips_of_kernel<kFullLanes>(problem)};
  if (g.x.c >= 8) return of_lanes(std::integral_constant<int, std::min(kFullLanes, 8)>());
  if (g.x.c >= 4) return of_lanes(std::integral_constant<int, std::min(kFullLanes, 4)>());
  return of_lanes(std::integral_constant<int, 1>());
}

/// Channels that are gone through at once: as many as leave the rows of a window in the first-level cache, or all, in
/// the order in which they lie, where lines are used up at once, and where an image that shares few of its rows between
/// windows comes from afar.
std::int64_t channels_at_once(const FloatProblem& problem, std::int64_t lanes) {
  constexpr std::int64_t kFloats = 8192;
  const ConvGeometry& g = problem.g;
  if (problem.separate || kTakesLines) return g.x.c;
  // Short windows of one row share columns with their neighbours only, which the cache holds anyway.
  if (g.vertical.kernel == 1 && g.horizontal.kernel <= kWidePixels) return g.x.c;
  if (g.vertical.stride > 1 && is_far(g)) return g.x.c;
  const std::int64_t pixels = std::max(static_cast<std::int64_t>(g.x.w), std::int64_t{1}) * g.vertical.kernel;
  const std::int64_t vectors = std::max<std::int64_t>(kFloats / (pixels * lanes), 1);
  return (g.x.c + lanes * vectors - 1) / (lanes * vectors) == 1 ? g.x.c : lanes * vectors;
}

/// Output rows of an item that are computed before the next ones, `channels` at once.
std::int64_t rows_at_once(const FloatProblem& problem, const RowKernel& kernel, std::int64_t channels) {
  const ConvGeometry& g = problem.g;
  const std::int64_t x_row = std::max(static_cast<std::int64_t>(g.x.w), std::int64_t{1}) * g.x.c;
  // An image from afar is fetched the faster the fewer rows are read at once.
  if (kernel.strips != nullptr) return is_far(g) ? 4 : 16;
  if (channels == g.x.c) return 1;
  // A band's part of the image stays in the second-level cache while its channels are gone through.
  constexpr std::int64_t kBandFloats = 65536;
  return std::max<std::int64_t>(kBandFloats / (x_row * g.vertical.stride), 1);
}

/// Output rows [oy, oy + rows) of item n.
HWY_INLINE void convolve_band(const FloatProblem& problem, const RowKernel& kernel, std::int64_t at_once,
                              std::int64_t n, std::int64_t oy, std::int64_t rows, const ClampedStore& store) {
  if (kernel.strips != nullptr) {
    kernel.strips(problem, n, oy, rows, store);
    return;
  }
  const std::int64_t depth = problem.g.x.c;
  for (std::int64_t c = 0; c < depth; c += at_once) {
    const Channels channels{std::min(c, depth - kernel.lanes), std::min<std::int64_t>(c + at_once, depth)};
    for (std::int64_t i = 0; i < rows; ++i) kernel.function(problem, n, oy + i, channels, store);
  }
}

/// Output rows [begin, end) of the batch.
void convolve_rows(const FloatProblem& problem, std::int64_t begin, std::int64_t end) {
  const ConvGeometry& g = problem.g;
  const ClampedStore store(problem.activation);
  const RowKernel kernel = row_kernel(problem);
  const std::int64_t channels = channels_at_once(problem, kernel.lanes);
  const std::int64_t band_rows = rows_at_once(problem, kernel, channels);
  for (std::int64_t row = begin; row < end;) {
    const std::int64_t n = row / g.y.h;
    const std::int64_t oy = row % g.y.h;
    const std::int64_t rows = std::min({band_rows, end - row, g.y.h - oy});
    convolve_band(problem, kernel, channels, n, oy, rows, store);
    for (std::int64_t i = 0; i < rows && !store.complete(); ++i)
      activate_rows(problem.activation, problem.y + g.y.offset(n, oy + i, 0), g.y.w, g.y.w_stride, g.y.c);
    row += rows;
  }
}

bool has_few_channels(const ConvGeometry& g) { return FewChannels::suits(g); }

/// The same of few channels, where the result does not overwrite the image.
void convolve_few_channels(const FloatProblem& problem, std::int64_t begin, std::int64_t end) {
  FewChannels few(problem);
  if (!few.has_finite_weights()) return convolve_rows(problem, begin, end);
  for (std::int64_t row = begin; row < end; ++row) few.convolve_row(row / problem.g.y.h, row % problem.g.y.h);
}

}  // namespace
}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::depthwise {

HWY_EXPORT(convolve_rows);
HWY_EXPORT(has_few_channels);
HWY_EXPORT(convolve_few_channels);

bool float_supports(const OpCall& call) {
  return linear_form(call.in(0), call.in(1)) == LinearForm::kFloat && call.in(0).dims[3] == call.out().dims[3] &&
         call.in(1).is_dense() && call.out().elements() > 0;
}

namespace {

template <typename Call>
ConvGeometry geometry_of(const Call& call) {
  const TensorDesc& w = call.in(1);
  return lying(conv_geometry(call.template as<Conv2dParams>(), call.in(0), call.out(), w.dims[0], w.dims[1]));
}

FloatProblem make_problem(const Invocation& call, const ConvGeometry& g) {
  const WindowAxis& across = g.horizontal;
  const std::int64_t reach = static_cast<std::int64_t>(across.kernel - 1) * across.dilation + 1;
  const std::int64_t room = g.x.w + static_cast<std::int64_t>(across.pad_before) - reach;
  return {g,
          call.input<float>(0),
          call.input<float>(1),
          optional_input<float>(call, 2),
          call.output<float>(),
          call.as<Conv2dParams>().activation,
          result_overlaps(call),
          (static_cast<std::int64_t>(across.pad_before) + across.stride - 1) / across.stride,
          room < 0 ? 0 : room / across.stride + 1};
}

}  // namespace

Footprint channels_footprint(const OpCall& call, int threads) {
  const ConvGeometry g = geometry_of(call);
  const std::int64_t pixels = std::max<std::int64_t>(suits_strips_of_rows(g) ? StripWidths(g).of(0) : 0, kMaxRunPixels);
  return {.lead_bytes = lead_bytes(call, g, pixels, threads)};
}

Status run_float(const Invocation& call) {
  ConvGeometry g = geometry_of(call);
  // Results that overwrite the image go from pixel to pixel, as they lie.
  const bool in_any_order = !result_overlaps(call);
  const bool few = in_any_order && HWY_DYNAMIC_DISPATCH(has_few_channels)(g);
  const auto convolve = few ? HWY_DYNAMIC_DISPATCH(convolve_few_channels) : HWY_DYNAMIC_DISPATCH(convolve_rows);
  if (!few && in_any_order && g.horizontal.kernel == 1 && g.vertical.kernel > 1) g = turned(g);
  const bool by_phases = !few && in_any_order && goes_by_phases(g.horizontal);
  parallel_rows(*call.threads, g, depthwise_grain(g),
                [&](const ConvGeometry& part, std::int64_t begin, std::int64_t end) {
                  if (!by_phases) return convolve(make_problem(call, part), begin, end);
                  const std::int64_t phases = std::min<std::int64_t>(g.horizontal.dilation, part.y.w);
                  for (std::int64_t phase = 0; phase < phases; ++phase)
                    convolve(make_problem(call, phase_of(part, phase)), begin, end);
                });
  return ok_status();
}

}  // namespace bantam::ops::depthwise
#endif
