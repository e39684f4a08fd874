// Depthwise convolution of bytes by pairs of neighbouring taps of a window's row with AVX2: for windows of one row, of
// which pairs of rows would fill half, for dilated ones, and for those too large for the buffers of other ways. Exact.
// For blocks of 32 channels the bytes of two columns are widened and interleaved, from every column on that a pair of
// some window begins at, so that windows which overlap share them. Windows are cut into passes of some rows, or of some
// pairs of a row; between passes the sums of a strip of pixels lie in memory. Columns outside the image hold the zero
// point. Included by *_simd.cpp files inside Highway's per-target compilation; buffers of 37 KiB lie on the stack.
#if defined(BANTAM_OPS_DEPTHWISE_TAP_PAIRS_AVX2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_TAP_PAIRS_AVX2_INL_H_
#undef BANTAM_OPS_DEPTHWISE_TAP_PAIRS_AVX2_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_TAP_PAIRS_AVX2_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "hwy/highway.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/depthwise_conv2d/byte_images.h"
#include "ops/nn/depthwise_conv2d/lanes_avx2-inl.h"
#include "ops/nn/depthwise_conv2d/taps_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86

/// How windows are cut into passes, and how a strip's columns lie: row after row of the pass.
struct PairPasses {
  static constexpr std::int64_t kColumns = 160;  ///< that are interleaved at once, 128 bytes each
  static constexpr std::int64_t kMostPixels = 64;
  static constexpr std::int64_t kMostPairs = 64;  ///< of a pass

  std::int64_t row_pairs;    ///< of a window's row
  std::int64_t rows;         ///< of a pass, but for the last: one where a row is cut
  std::int64_t pairs;        ///< of a row in a pass, but for the last
  std::int64_t unit;         ///< image columns between those that are interleaved
  std::int64_t pixel_step;   ///< from the columns of a pixel to those of the next, in units
  std::int64_t pair_step;    ///< from a pair to the next, in units
  std::int64_t row_columns;  ///< from a row to the next, in units
  std::int64_t pixels;       ///< a strip

  explicit PairPasses(const ConvGeometry& g) : row_pairs((g.horizontal.kernel + 1) / 2) {
    constexpr std::int64_t kWorthwhile = 16;  // pixels: fewer would share too few columns
    const std::int64_t enough = std::min<std::int64_t>(kWorthwhile, g.y.w);
    std::int64_t most = std::min(row_pairs, kMostPairs);
    while (set(g, 1, most), most > 1 && pixels < enough) --most;
    if (most < row_pairs) {
      set(g, 1, evenly(row_pairs, most));
      return;
    }
    std::int64_t most_rows = std::min<std::int64_t>(g.vertical.kernel, kMostPairs / row_pairs);
    while (set(g, most_rows, row_pairs), most_rows > 1 && pixels < enough) --most_rows;
    set(g, evenly(g.vertical.kernel, most_rows), row_pairs);
  }

 private:
  /// The size of parts, at most `most`, that a whole is cut into.
  static std::int64_t evenly(std::int64_t whole, std::int64_t most) {
    const std::int64_t parts = (whole + most - 1) / most;
    return (whole + parts - 1) / parts;
  }

  /// A single pair of each window needs no columns but the pixels' own.
  void set(const ConvGeometry& g, std::int64_t pass_rows, std::int64_t pass_pairs) {
    const std::int64_t pixel_columns = g.horizontal.stride;
    const std::int64_t pair_columns = 2 * std::int64_t{g.horizontal.dilation};
    rows = pass_rows;
    pairs = pass_pairs;
    unit = pairs == 1 ? pixel_columns : std::gcd(pixel_columns, pair_columns);
    pixel_step = pixel_columns / unit;
    pair_step = pairs == 1 ? 0 : pair_columns / unit;
    const std::int64_t left = kColumns / rows - 1 - (pairs - 1) * pair_step;
    pixels = left < 0 ? 0 : std::min({left / pixel_step + 1, kMostPixels, std::int64_t{g.y.w}});
    row_columns = columns(pixels);
  }

 public:
  /// Columns of a row that `n` pixels see in a pass.
  std::int64_t columns(std::int64_t n) const { return (n - 1) * pixel_step + (pairs - 1) * pair_step + 1; }
};

/// What is the same for all pixels of a block of channels.
template <class Finish>
class TapPairBlock {
 public:
  static constexpr std::int64_t kTaps = 2;
  static constexpr std::int64_t kChannels = kBlockChannels;

  template <class Scaler>
  HWY_INLINE TapPairBlock(const TapProblem& problem, const Scaler& scaler, std::int64_t first)
      : p_(problem.images),
        w_row_step_(problem.w_row_step),
        w_tap_step_(problem.w_tap_step),
        lanes_(lanes_from(first, p_.g.x.c)),
        passes_(p_.g),
        finish_(scaler, lanes_) {
    WeightSums sums;
    for_each_pass([&](const Pass& pass) HWY_ATTR { load_weights(pass, sums); });
    start_sums(sums, p_.form.zero, finish_.bias(), lanes_, start_);
  }

  /// `count` output pixels of row oy of item n from column ox on.
  HWY_INLINE void convolve(std::int64_t n, std::int64_t oy, std::int64_t ox, std::int64_t count) {
    for (std::int64_t done = 0; done < count; done += passes_.pixels)
      convolve_strip(n, oy, ox + done, std::min(passes_.pixels, count - done));
  }

 private:
  static constexpr int kPixels = 8;  ///< that are computed at once

  /// Rows [row, last_row) of the windows, and their pairs [first, last).
  struct Pass {
    std::int64_t row, last_row;
    std::int64_t first, last;
    bool is_first;
    bool is_last;
  };

  template <class F>
  HWY_INLINE void for_each_pass(F f) const {
    const std::int64_t kernel_rows = p_.g.vertical.kernel;
    for (std::int64_t row = 0, last_row; row < kernel_rows; row = last_row) {
      last_row = std::min(row + passes_.rows, kernel_rows);
      for (std::int64_t first = 0, last; first < passes_.row_pairs; first = last) {
        last = std::min(first + passes_.pairs, passes_.row_pairs);
        f(Pass{row, last_row, first, last, row == 0 && first == 0,
               last_row == kernel_rows && last == passes_.row_pairs});
      }
    }
  }

  HWY_INLINE __m256i weights_at(std::int64_t row, std::int64_t tap) const {
    if (tap >= p_.g.horizontal.kernel) return _mm256_setzero_si256();
    const std::int8_t* w = p_.w + row * w_row_step_ + tap * w_tap_step_;
    return load_lanes(w + lanes_.first[0], w + lanes_.first[1]);
  }

  /// Those of a pass, which then are at hand.
  HWY_INLINE void load_weights(const Pass& pass, WeightSums& sums) {
    std::int16_t* to = weights_;
    for (std::int64_t row = pass.row; row < pass.last_row; ++row)
      for (std::int64_t pair = pass.first; pair < pass.last; ++pair, to += kPairNumbers)
        store_weights(weights_at(row, 2 * pair), weights_at(row, 2 * pair + 1), to, sums);
  }

  /// Where a strip's pixels come from and go to.
  struct Strip {
    const std::int16_t* columns;
    std::int32_t* sums;  ///< between passes, as of TileSums
    TileResult y;        ///< of the first pixel
  };

  HWY_NOINLINE void convolve_strip(std::int64_t n, std::int64_t oy, std::int64_t ox, std::int64_t pixels) {
    HWY_ALIGN std::int16_t columns[PairPasses::kColumns * kPairNumbers];
    HWY_ALIGN std::int32_t sums[PairPasses::kMostPixels * kBlockChannels];
    const std::int64_t iy = window_origin(p_.g.vertical, oy);
    const std::int64_t ix = window_origin(p_.g.horizontal, ox);
    std::uint8_t* const y = p_.y + p_.g.y.offset(n, oy, ox);
    const Strip strip{columns, sums, {{y + lanes_.first[0], y + lanes_.first[1]}, 0, p_.g.y.w_stride}};
    for_each_pass([&](const Pass& pass) HWY_ATTR {
      std::int16_t* to = columns;
      for (std::int64_t row = pass.row; row < pass.last_row; ++row, to += passes_.row_columns * kPairNumbers)
        interleave(n, iy + row * p_.g.vertical.dilation, ix + 2 * pass.first * p_.g.horizontal.dilation,
                   passes_.columns(pixels), to);
      WeightSums unused;
      if (!pass.is_first || !pass.is_last) load_weights(pass, unused);
      passes_.pixel_step == 1 ? convolve_pixels<1>(pass, strip, pixels) : convolve_pixels<0>(pass, strip, pixels);
    });
  }

  /// kStep: pixel_step, or 0 for any.
  template <int kStep>
  HWY_INLINE void convolve_pixels(const Pass& pass, const Strip& strip, std::int64_t pixels) const {
    std::int64_t i = 0;
    for (; i + kPixels <= pixels; i += kPixels) convolve_tile<kStep, kPixels>(pass, strip, i);
    ops::HWY_NAMESPACE::unroll<3>([&](auto part) HWY_ATTR {
      constexpr int kPart = kPixels >> (part + 1);
      if ((pixels & kPart) == 0) return;
      convolve_tile<kStep, kPart>(pass, strip, i);
      i += kPart;
    });
  }

  /// Pixels [pixel, pixel + kCount) of a strip.
  template <int kStep, int kCount>
  HWY_NOINLINE void convolve_tile(const Pass& pass, const Strip& strip, std::int64_t pixel) const {
    TileSums<1, kCount> tile;
    std::int32_t* const kept = strip.sums + pixel * kBlockChannels;
    const std::int64_t step = (kStep != 0 ? kStep : passes_.pixel_step) * kPairNumbers;
    for (int i = 0; i < 4; ++i) {
      std::int32_t* const kept_sums = kept + i * kCount * 8;
      sum_channels<kStep, kCount>(pass, strip.columns + pixel * step + i * kLaneChannels, i, kept_sums,
                                  pass.is_last ? tile.numbers[i][0] : kept_sums);
    }
    if (!pass.is_last) return;
    const std::int64_t by = pixel * strip.y.pixel_step;
    finish_(tile, {{strip.y.lanes[0] + by, strip.y.lanes[1] + by}, 0, strip.y.pixel_step});
  }

  /// Channels 4i to 4i + 3 of each lane: the sums of kCount pixels, eight numbers each, from `kept` to `to`.
  template <int kStep, int kCount>
  HWY_INLINE void sum_channels(const Pass& pass, const std::int16_t* columns, int i, const std::int32_t* kept,
                               std::int32_t* to) const {
    using ops::HWY_NAMESPACE::unroll;
    const std::int64_t step = (kStep != 0 ? kStep : passes_.pixel_step) * kPairNumbers;
    const std::int64_t pair_step = passes_.pair_step * kPairNumbers;
    __m256i sums[kCount];
    unroll<kCount>([&](auto t) HWY_ATTR {
      sums[t] = pass.is_first ? start_[i] : _mm256_load_si256(reinterpret_cast<const __m256i*>(kept + 8 * t));
    });
    const std::int16_t* w = weights_ + i * kLaneChannels;
    for (std::int64_t row = pass.row; row < pass.last_row; ++row, columns += passes_.row_columns * kPairNumbers) {
      const std::int16_t* x = columns;
      for (std::int64_t pair = pass.first; pair < pass.last; ++pair, x += pair_step, w += kPairNumbers) {
        const __m256i weights = load_numbers(w);
        unroll<kCount>([&](auto t) HWY_ATTR {
          sums[t] = _mm256_add_epi32(sums[t], _mm256_madd_epi16(load_numbers(x + t * step), weights));
        });
      }
    }
    unroll<kCount>([&](auto t) HWY_ATTR { _mm256_store_si256(reinterpret_cast<__m256i*>(to + 8 * t), sums[t]); });
  }

  /// `count` columns of image row iy, each with the one that the next tap meets, a unit apart, the first from image
  /// column ix on.
  HWY_INLINE void interleave(std::int64_t n, std::int64_t iy, std::int64_t ix, std::int64_t count,
                             std::int16_t* to) const {
    const ImageShape& x = p_.g.x;
    const std::int64_t dilation = p_.g.horizontal.dilation;
    const std::int64_t width = iy >= 0 && iy < x.h ? x.w : 0;
    const std::uint8_t* row = p_.x + (width > 0 ? x.offset(n, iy, 0) : 0);
    const __m256i outside = _mm256_set1_epi8(static_cast<char>(p_.form.zero));
    const __m256i flip = _mm256_set1_epi8(static_cast<char>(p_.form.flip));
    const auto load = [&](std::int64_t column) HWY_ATTR {
      if (column < 0 || column >= width) return outside;
      const std::uint8_t* from = row + column * x.w_stride;
      return _mm256_xor_si256(load_lanes(from + lanes_.first[0], from + lanes_.first[1]), flip);
    };
    for (std::int64_t i = 0, column = ix; i < count; ++i, column += passes_.unit, to += kPairNumbers)
      store_pairs(load(column), load(column + dilation), to);
  }

  const ByteImages& p_;
  std::int64_t w_row_step_;
  std::int64_t w_tap_step_;
  LaneChannels lanes_;
  PairPasses passes_;
  Finish finish_;
  __m256i start_[4];
  HWY_ALIGN std::int16_t weights_[PairPasses::kMostPairs * kPairNumbers];
};
#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
