// 3x3 depthwise windows in f32 in strips from top to bottom: a few neighbouring output columns, whose sums in three
// rows and nine weights stay in registers, so that a row of the image is read once for the three rows of results that
// it is in. Which columns of a strip lie outside the image is known while compiling. Included by *_simd.cpp files
// inside Highway's per-target compilation.
#if defined(BANTAM_OPS_STRIPS_F32_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_STRIPS_F32_SIMD_INL_H_
#undef BANTAM_OPS_STRIPS_F32_SIMD_INL_H_
#else
#define BANTAM_OPS_STRIPS_F32_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/clamped_store_simd-inl.h"
#include "ops/nn/depthwise_conv2d/float_problem.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::ClampedStore;
using ops::HWY_NAMESPACE::in_register;
using ops::HWY_NAMESPACE::unroll;

/// Whether registers hold nine weights beside the sums of three rows of a strip.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
inline constexpr bool kTakesStrips = true;
#else
inline constexpr bool kTakesStrips = false;
#endif

/// Some rows of some neighbouring output columns of one item.
struct Strip {
  const float* x;          ///< the item's image
  float* y;                ///< the strip's first pixel, channel 0
  std::int64_t first_row;  ///< of the image that the first windows read; may lie outside the image
  std::int64_t rows;       ///< of the output
  std::int64_t origin;     ///< the first column of the image that windows read; -1 where it lies outside
};

/// Calls f(i) for i = 0 ... rows - 1, four in turn by instructions of their own. Where one load instruction goes on by
/// the same step three times, processors fetch what it would read next (Software Optimization Guide for the AMD Zen4
/// Microarchitecture, "L1 Stride" prefetcher): at the last rows of a strip that is what another thread has written,
/// which then has to ask for its own lines before it writes them again. Layers of 12x12 took longer with two threads
/// than one.
template <class F>
HWY_INLINE void for_each_row(std::int64_t rows, F f) {
  for (std::int64_t i = 0; i < rows;)
    unroll<4>([&](auto) __attribute__((always_inline)) HWY_ATTR {
      if (i < rows) f(i++);
    });
}

/// Calls f(c) for all vectors of at least as many channels; the last one may overlap the one before, which writes equal
/// values twice.
template <class DF, class F>
HWY_INLINE void for_vectors(DF /*d*/, std::int64_t channels, F f) {
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(DF()));
  for (std::int64_t c = 0; c < channels; c += kLanes) f(std::min(c, channels - kLanes));
}

/// The output rows whose windows an image row is the last, middle and first row of.
template <int kPixels, class V>
struct StripSums {
  V last[kPixels];
  V middle[kPixels];
  V first[kPixels];
};

/// Adds what column kColumn of a strip's, in a row of the image, gives to the windows that read it.
template <int kColumn, int kPixels, class V>
HWY_INLINE void accumulate_strip_pixel(V pixel, const V (&weights)[3][3], StripSums<kPixels, V>& sums) {
  unroll<3>([&](auto kx) __attribute__((always_inline)) HWY_ATTR {
    constexpr int kPixel = kColumn - kx;
    if constexpr (kPixel >= 0 && kPixel < kPixels) {
      sums.last[kPixel] = hn::MulAdd(pixel, weights[2][kx], sums.last[kPixel]);
      sums.middle[kPixel] = hn::MulAdd(pixel, weights[1][kx], sums.middle[kPixel]);
      sums.first[kPixel] = hn::MulAdd(pixel, weights[0][kx], sums.first[kPixel]);
    }
  });
}

/// Adds the row of the image at `x`, and stores the results that it completes, if kStores, at `y`: each at once, so
/// that the sums that the row begins find its register free. kLeft, kRight: do the first and last column lie inside the
/// image?
template <bool kStores, bool kLeft, bool kRight, int kPixels, class DF, class V = hn::Vec<DF>>
HWY_INLINE void accumulate_strip_row(DF d, const FloatProblem& problem, const Strip& strip, const float* x,
                                     const V (&weights)[3][3], StripSums<kPixels, V>& sums, float* y,
                                     const ClampedStore& store) {
  const std::int64_t x_step = problem.g.x.w_stride;
  const std::int64_t y_step = problem.g.y.w_stride;
  unroll<kPixels + 2>([&](auto l) __attribute__((always_inline)) HWY_ATTR {
    if constexpr ((kLeft || l > 0) && (kRight || l <= kPixels))
      accumulate_strip_pixel<l>(in_register(hn::LoadU(d, x + (strip.origin + l) * x_step)), weights, sums);
    if constexpr (kStores && l >= 2) store(d, sums.last[l - 2], y + (l - 2) * y_step);
  });
}

/// Goes on to the next row of the image.
template <int kPixels, class V>
HWY_INLINE void advance_sums(V start, StripSums<kPixels, V>& sums) {
  unroll<kPixels>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
    sums.last[i] = sums.middle[i];
    sums.middle[i] = sums.first[i];
    sums.first[i] = start;
  });
}

/// The vector of channels from c on of a strip, from top to bottom. The sums of rows above and below the strip are
/// begun or left unfinished.
template <int kPixels, bool kLeft, bool kRight, class DF>
HWY_NOINLINE void convolve_strip(DF d, const FloatProblem& problem, const Strip& strip, std::int64_t c,
                                 const ClampedStore& store) {
  using V = hn::Vec<DF>;
  const ConvGeometry& g = problem.g;
  V weights[3][3];
  unroll<9>([&](auto i) __attribute__((always_inline))
            HWY_ATTR { weights[i / 3][i % 3] = in_register(hn::LoadU(d, problem.w + i * g.x.c + c)); });
  const V start = problem.bias != nullptr ? hn::LoadU(d, problem.bias + c) : hn::Zero(d);
  StripSums<kPixels, V> sums;
  unroll<kPixels>([&](auto i) __attribute__((always_inline))
                  HWY_ATTR { sums.last[i] = sums.middle[i] = sums.first[i] = start; });
  float* y = strip.y + c;
  const float* x = strip.x + strip.first_row * g.x.h_stride + c;
  const std::int64_t above = -strip.first_row;  // rows of the image above it
  const std::int64_t below = g.x.h - strip.first_row;
  unroll<2>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
    if (i >= above && i < below)
      accumulate_strip_row<false, kLeft, kRight>(d, problem, strip, x, weights, sums, y, store);
    x += g.x.h_stride;
    advance_sums(start, sums);
  });
  for_each_row(
      strip.rows, [&](std::int64_t i) __attribute__((always_inline)) HWY_ATTR {
        if (i + 2 >= above && i + 2 < below) {
          accumulate_strip_row<true, kLeft, kRight>(d, problem, strip, x, weights, sums, y, store);
        } else {
          unroll<kPixels>([&](auto pixel) __attribute__((always_inline))
                          HWY_ATTR { store(d, sums.last[pixel], y + pixel * g.y.w_stride); });
        }
        x += g.x.h_stride;
        y += g.y.h_stride;
        advance_sums(start, sums);
      });
}

/// Adds what column kColumn of a strip of stride 2, in a row of the image, gives to the windows that read it: `weights`
/// are those of one row.
template <int kColumn, int kPixels, class V>
HWY_INLINE void accumulate_strided_pixel(V pixel, const V (&weights)[3], V (&sums)[kPixels]) {
  unroll<3>([&](auto kx) __attribute__((always_inline)) HWY_ATTR {
    constexpr int kOffset = kColumn - kx;
    if constexpr (kOffset >= 0 && kOffset % 2 == 0 && kOffset / 2 < kPixels)
      sums[kOffset / 2] = hn::MulAdd(pixel, weights[kx], sums[kOffset / 2]);
  });
}

/// Calls f(column, pixel), a constant and a vector, for the columns of a strip that lie inside the image; x is at its
/// first channel in column 0 of a row.
template <int kColumns, bool kLeft, bool kRight, class DF, class F>
HWY_INLINE void for_strip_columns(DF d, const FloatProblem& problem, const Strip& strip, const float* x, F f) {
  unroll<kColumns>([&](auto l) __attribute__((always_inline)) HWY_ATTR {
    if constexpr ((kLeft || l > 0) && (kRight || l + 1 < kColumns))
      f(l, in_register(hn::LoadU(d, x + (strip.origin + l) * problem.g.x.w_stride)));
  });
}

/// convolve_strip with stride 2: every other row of the image is the last row of one row of results and the first of
/// the next.
template <int kPixels, bool kLeft, bool kRight, class DF>
HWY_NOINLINE void convolve_strided_strip(DF d, const FloatProblem& problem, const Strip& strip, std::int64_t c,
                                         const ClampedStore& store) {
  using V = hn::Vec<DF>;
  constexpr int kColumns = 2 * kPixels + 1;
  const ConvGeometry& g = problem.g;
  V weights[3][3];
  unroll<9>([&](auto i) __attribute__((always_inline))
            HWY_ATTR { weights[i / 3][i % 3] = in_register(hn::LoadU(d, problem.w + i * g.x.c + c)); });
  const V start = problem.bias != nullptr ? hn::LoadU(d, problem.bias + c) : hn::Zero(d);
  V sums[kPixels];
  V next[kPixels];
  unroll<kPixels>([&](auto i) __attribute__((always_inline)) HWY_ATTR { sums[i] = start; });
  const auto has_row = [&](std::int64_t row) { return row >= 0 && row < g.x.h; };
  const float* x = strip.x + strip.first_row * g.x.h_stride + c;
  if (has_row(strip.first_row))
    for_strip_columns<kColumns, kLeft, kRight>(
        d, problem, strip, x, [&](auto l, V pixel) __attribute__((always_inline)) HWY_ATTR {
          accumulate_strided_pixel<l>(pixel, weights[0], sums);
        });
  float* y = strip.y + c;
  std::int64_t middle = strip.first_row + 1;
  for_each_row(
      strip.rows, [&](std::int64_t /*i*/) __attribute__((always_inline)) HWY_ATTR {
        x += g.x.h_stride;
        if (has_row(middle))
          for_strip_columns<kColumns, kLeft, kRight>(
              d, problem, strip, x, [&](auto l, V pixel) __attribute__((always_inline)) HWY_ATTR {
                accumulate_strided_pixel<l>(pixel, weights[1], sums);
              });
        x += g.x.h_stride;
        unroll<kPixels>([&](auto pixel) __attribute__((always_inline)) HWY_ATTR { next[pixel] = start; });
        if (has_row(middle + 1))
          for_strip_columns<kColumns, kLeft, kRight>(
              d, problem, strip, x, [&](auto l, V pixel) __attribute__((always_inline)) HWY_ATTR {
                accumulate_strided_pixel<l>(pixel, weights[2], sums);
                accumulate_strided_pixel<l>(pixel, weights[0], next);
              });
        unroll<kPixels>([&](auto pixel) __attribute__((always_inline)) HWY_ATTR {
          store(d, sums[pixel], y + pixel * g.y.w_stride);
          sums[pixel] = next[pixel];
        });
        y += g.y.h_stride;
        middle += 2;
      });
}

/// The vector of channels from c on of one row of a strip at `y`, whose windows have the rows of `taps` inside the
/// image, the first at `x`: fewer registers, and nothing is stored before all is read.
template <int kPixels, bool kLeft, bool kRight, class DF>
HWY_INLINE void convolve_row_of_strip(DF d, const FloatProblem& problem, const float* x, const TapRange& taps,
                                      std::int64_t c, float* y, const ClampedStore& store) {
  using V = hn::Vec<DF>;
  const ConvGeometry& g = problem.g;
  V sums[kPixels];
  const V start = problem.bias != nullptr ? hn::LoadU(d, problem.bias + c) : hn::Zero(d);
  unroll<kPixels>([&](auto i) __attribute__((always_inline)) HWY_ATTR { sums[i] = start; });
  x += c;
  const float* w = problem.w + taps.first * 3 * g.x.c + c;
  for (std::int64_t ky = taps.first; ky < taps.last; ++ky, x += g.x.h_stride, w += 3 * g.x.c) {
    V weights[3];
    unroll<3>([&](auto kx) __attribute__((always_inline))
              HWY_ATTR { weights[kx] = in_register(hn::LoadU(d, w + kx * g.x.c)); });
    unroll<kPixels + 2>([&](auto l) __attribute__((always_inline)) HWY_ATTR {
      if constexpr ((!kLeft && l == 0) || (!kRight && l == kPixels + 1)) return;
      const V pixel = in_register(hn::LoadU(d, x + l * g.x.w_stride));
      unroll<3>([&](auto kx) __attribute__((always_inline)) HWY_ATTR {
        constexpr int kPixel = l - kx;
        if constexpr (kPixel >= 0 && kPixel < kPixels) sums[kPixel] = hn::MulAdd(pixel, weights[kx], sums[kPixel]);
      });
    });
  }
  unroll<kPixels>([&](auto i) __attribute__((always_inline)) HWY_ATTR { store(d, sums[i], y + i * g.y.w_stride + c); });
}

/// All channels of a strip, row by row.
template <int kPixels, bool kLeft, bool kRight, class DF>
HWY_NOINLINE void convolve_strip_by_rows(DF d, const FloatProblem& problem, const Strip& strip,
                                         const ClampedStore& store) {
  const ConvGeometry& g = problem.g;
  float* y = strip.y;
  for (std::int64_t i = 0; i < strip.rows; ++i, y += g.y.h_stride) {
    const std::int64_t first_row = strip.first_row + i;
    const TapRange taps = taps_inside(g.vertical, first_row, 0, g.x.h);
    const float* x = strip.x + (first_row + taps.first) * g.x.h_stride + strip.origin * g.x.w_stride;
    for_vectors(d, g.x.c, [&](std::int64_t c) HWY_ATTR {
      convolve_row_of_strip<kPixels, kLeft, kRight>(d, problem, x, taps, c, y, store);
    });
  }
}

/// The same, a vector of channels before the next.
template <int kPixels, int kStride, bool kLeft, bool kRight, class DF>
void convolve_strip_by_channels(DF d, const FloatProblem& problem, const Strip& strip, const ClampedStore& store) {
  for_vectors(d, problem.g.x.c, [&](std::int64_t c) HWY_ATTR {
    if constexpr (kStride == 1) {
      convolve_strip<kPixels, kLeft, kRight>(d, problem, strip, c, store);
    } else {
      convolve_strided_strip<kPixels, kLeft, kRight>(d, problem, strip, c, store);
    }
  });
}

template <class DF>
using StripFunction = void (*)(DF, const FloatProblem&, const Strip&, const ClampedStore&);

/// By rows: for results that overwrite the image; stride 1 only.
template <class DF, int kPixels, int kStride, bool kLeft, bool kRight>
StripFunction<DF> strip_function_in_order(bool by_rows) {
  if constexpr (kTakesStrips)
    if (!by_rows) return convolve_strip_by_channels<kPixels, kStride, kLeft, kRight, DF>;
  return convolve_strip_by_rows<kPixels, kLeft, kRight, DF>;
}

template <class DF, int kPixels, int kStride>
StripFunction<DF> strip_function_inside(bool left, bool right, bool by_rows) {
  if (left && right) return strip_function_in_order<DF, kPixels, kStride, true, true>(by_rows);
  if (left) return strip_function_in_order<DF, kPixels, kStride, true, false>(by_rows);
  if (right) return strip_function_in_order<DF, kPixels, kStride, false, true>(by_rows);
  return strip_function_in_order<DF, kPixels, kStride, false, false>(by_rows);
}

/// Of a strip of `pixels`, from kLeastStrip to kMostStrip.
template <class DF, int kPixels = kMostStrip>
StripFunction<DF> strip_function(const ConvGeometry& g, const Strip& strip, std::int64_t pixels, bool by_rows) {
  if constexpr (kPixels > kLeastStrip)
    if (pixels < kPixels) return strip_function<DF, kPixels - 1>(g, strip, pixels, by_rows);
  const bool left = strip.origin >= 0;
  const bool right = strip.origin + (kPixels - 1) * g.horizontal.stride + 3 <= g.x.w;
  if constexpr (kTakesStrips)
    if (g.horizontal.stride == 2) return strip_function_inside<DF, kPixels, 2>(left, right, by_rows);
  return strip_function_inside<DF, kPixels, 1>(left, right, by_rows);
}

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
