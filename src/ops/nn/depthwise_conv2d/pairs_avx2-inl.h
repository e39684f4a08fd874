// Depthwise convolution of bytes with AVX2, for the integer kernels of depthwise_conv2d and conv2d_affine; exact. Of
// each image column two rows at a time are widened to 16 bits and interleaved, so that a pair holds one channel of
// them: the windows beside each other share it, and those of two output rows, if the stride is 1 or even. A lane of 128
// bits takes 16 channels, of which the last may overlap those before; the two lanes of vectors take neighbouring
// channels, or of the last ones different output rows. Rows and columns outside the image hold the zero point. Included
// by *_simd.cpp files inside Highway's per-target compilation; buffers of 32 KiB lie on the stack.
#if defined(BANTAM_OPS_DEPTHWISE_PAIRS_AVX2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_PAIRS_AVX2_INL_H_
#undef BANTAM_OPS_DEPTHWISE_PAIRS_AVX2_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_PAIRS_AVX2_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/depthwise_conv2d/byte_images.h"
#include "ops/nn/depthwise_conv2d/lanes_avx2-inl.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86

constexpr std::int64_t kMaxWindowPairs = 30;  ///< of the windows that share pairs
constexpr std::int64_t kMaxColumnPairs = 96;  ///< that are interleaved at once
constexpr std::int64_t kMaxBlocks = 4;        ///< of channels that are interleaved at once
constexpr int kTilePixels = 4;                ///< neighbours that are computed together
constexpr int kMostTilePixels = 5;            ///< where tiles have any number of them

/// Output rows that share what is interleaved: windows that begin on different rows of pairs have weights of their own,
/// with even strides they begin on the first ones.
inline std::int64_t rows_at_once(const ConvGeometry& g) {
  const WindowAxis& v = g.vertical;
  return v.dilation == 1 && (v.stride == 1 || (v.stride % 2 == 0 && v.stride < v.kernel)) ? 2 : 1;
}

/// Of these, the ones that are summed together.
inline std::int64_t window_rows(const ConvGeometry& g) { return g.vertical.stride == 1 ? rows_at_once(g) : 1; }

/// Are windows the same both ways, and dense?
inline bool is_square(const ConvGeometry& g) {
  return g.vertical.kernel == g.horizontal.kernel && g.vertical.stride == g.horizontal.stride &&
         g.vertical.dilation == 1 && g.horizontal.dilation == 1;
}

/// Pairs of one column that windows of so many output rows see.
inline std::int64_t column_pairs(const ConvGeometry& g, std::int64_t rows) {
  return ((rows - 1) * g.vertical.stride + g.vertical.kernel + 1) / 2;
}

/// Blocks of channels whose columns are interleaved before any of them is computed: all, where results are written over
/// what other channels read.
inline std::int64_t blocks_at_once(const ByteImages& p) {
  return p.overlaps ? (p.g.x.c + kBlockChannels - 1) / kBlockChannels : 1;
}

/// Neighbours whose columns are interleaved at once.
inline std::int64_t pixels_at_once(const ByteImages& p) {
  const ConvGeometry& g = p.g;
  const std::int64_t columns = kMaxColumnPairs / blocks_at_once(p) / column_pairs(g, rows_at_once(g));
  const std::int64_t pixels =
      columns < g.horizontal.kernel ? 0 : (columns - g.horizontal.kernel) / g.horizontal.stride + 1;
  return pixels >= g.y.w ? g.y.w : pixels / kTilePixels * kTilePixels;
}

/// Pixels of the next tile of a row that has so many left: four, so that none is left alone.
constexpr int next_tile(std::int64_t left) {
  return left < kTilePixels || left == kMostTilePixels ? static_cast<int>(left) : left == 6 ? 3 : kTilePixels;
}

/// Are windows dense and small enough for the buffers, are there channels for a lane, and is no column interleaved in
/// vain? Many blocks that would take turns within a row are faster another way.
inline bool pairs_fit(const ByteImages& p) {
  const ConvGeometry& g = p.g;
  const std::int64_t blocks = blocks_at_once(p);
  return g.x.c >= kLaneChannels && g.horizontal.dilation == 1 && g.horizontal.stride <= g.horizontal.kernel &&
         window_rows(g) * column_pairs(g, window_rows(g)) * g.horizontal.kernel <= kMaxWindowPairs &&
         pixels_at_once(p) >= (blocks > 2 ? g.y.w : 1) && blocks <= kMaxBlocks;
}

/// Output rows that a lane computes: as many as the other lane, from row oy of item n on.
struct LaneRows {
  std::int64_t n;
  std::int64_t oy;
};

/// What is the same for all pixels of two lanes of channels.
template <class Finish>
class PairBlock {
 public:
  template <class Scaler>
  HWY_INLINE PairBlock(const ByteImages& p, const Scaler& scaler, const LaneChannels& lanes)
      : p_(p),
        lanes_(lanes),
        pairs_(column_pairs(p.g, rows_at_once(p.g))),
        window_rows_(window_rows(p.g)),
        window_pairs_(column_pairs(p.g, window_rows_)),
        kernel_(is_square(p.g) ? p.g.vertical.kernel : 0),
        stride_(p.g.vertical.stride),
        finish_(scaler, lanes) {
    load_weights();
  }

  /// May the lanes take different rows?
  bool lanes_are_alike() const { return lanes_.first[0] == lanes_.first[1]; }

  /// Numbers of the columns of so many neighbours.
  std::int64_t column_numbers(std::int64_t pixels) const { return column_count(pixels) * pairs_ * kPairNumbers; }

  /// What `pixels` neighbours from column `first` on see, of one output row of each lane, or of two, if so many are
  /// computed at once: column_numbers() of them.
  HWY_INLINE void interleave_columns(const LaneRows (&at)[2], std::int64_t rows, std::int64_t first,
                                     std::int64_t pixels, std::int16_t* columns) const {
    interleave(at, rows, window_origin(p_.g.horizontal, first), column_count(pixels), columns);
  }

  /// These neighbours.
  HWY_INLINE void convolve(const LaneRows (&at)[2], std::int64_t rows, std::int64_t first, std::int64_t pixels,
                           const std::int16_t* columns) const {
    TileResult y{{}, p_.g.y.h_stride, p_.g.y.w_stride};
    for (int l = 0; l < 2; ++l) y.lanes[l] = p_.y + p_.g.y.offset(at[l].n, at[l].oy, first) + lanes_.first[l];
    if (rows == 2 && window_rows_ == 2) {
      convolve_pixels<2>(columns, pixels, y);
      return;
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      convolve_pixels<1>(columns + row * p_.g.vertical.stride / 2 * kPairNumbers, pixels, y);
      for (std::uint8_t*& lane : y.lanes) lane += y.row_step;
    }
  }

 private:
  std::int64_t column_count(std::int64_t pixels) const {
    return (pixels - 1) * p_.g.horizontal.stride + p_.g.horizontal.kernel;
  }

  /// The weights of a kernel row, which may be none.
  HWY_INLINE __m256i weights_at(std::int64_t ky, std::int64_t kx) const {
    if (ky < 0 || ky >= p_.g.vertical.kernel) return _mm256_setzero_si256();
    const std::int8_t* w = p_.w + (ky * p_.g.horizontal.kernel + kx) * p_.g.x.c;
    return load_lanes(w + lanes_.first[0], w + lanes_.first[1]);
  }

  /// The weights as they meet the pairs, and what sums start at.
  HWY_INLINE void load_weights() {
    WeightSums sums;
    WeightSums others;  // those of the first row are complete
    std::int16_t* to = weights_;
    std::int64_t left = window_pairs_ * p_.g.horizontal.kernel;
    for (std::int64_t kx = 0; kx < p_.g.horizontal.kernel; ++kx)
      for (std::int64_t pair = 0; pair < window_pairs_; ++pair) {
        steps_[left--] = (pair + 1 < window_pairs_ ? 1 : pairs_ - window_pairs_ + 1) * kPairNumbers;
        for (std::int64_t row = 0; row < window_rows_; ++row, to += kPairNumbers)
          store_weights(weights_at(2 * pair - row, kx), weights_at(2 * pair + 1 - row, kx), to,
                        row == 0 ? sums : others);
      }
    start_sums(sums, p_.form.zero, finish_.bias(), lanes_, start_);
  }

  /// Four image rows of each lane.
  struct FourRows {
    const std::uint8_t* at[2][4];  ///< of a lane; any row instead of one outside the image
    __m256i inside[4];             ///< bits that are not the image's are cleared
    __m256i flip[4];               ///< and then these inverted
    bool is_plain;                 ///< nothing is cleared or inverted
  };

  HWY_INLINE FourRows rows_at(const LaneRows (&at)[2], std::int64_t ky, std::int64_t ix) const {
    const ImageShape& x = p_.g.x;
    FourRows rows;
    rows.is_plain = p_.form.flip == 0;
    const std::uint8_t* image[2];
    std::int64_t first_row[2];
    for (int l = 0; l < 2; ++l) {
      image[l] = p_.x + x.offset(at[l].n, 0, ix) + lanes_.first[l];
      first_row[l] = window_origin(p_.g.vertical, at[l].oy) + ky * p_.g.vertical.dilation;
    }
    for (int i = 0; i < 4; ++i) {
      __m128i inside[2];
      for (int l = 0; l < 2; ++l) {
        const std::int64_t iy = first_row[l] + i * p_.g.vertical.dilation;
        rows.at[l][i] = image[l] + std::clamp<std::int64_t>(iy, 0, x.h - 1) * x.h_stride;
        const bool is_inside = iy >= 0 && iy < x.h;
        rows.is_plain = rows.is_plain && is_inside;
        inside[l] = _mm_set1_epi8(is_inside ? -1 : 0);
      }
      rows.inside[i] = _mm256_setr_m128i(inside[0], inside[1]);
      rows.flip[i] = _mm256_blendv_epi8(_mm256_set1_epi8(static_cast<char>(p_.form.zero)),
                                        _mm256_set1_epi8(static_cast<char>(p_.form.flip)), rows.inside[i]);
    }
    return rows;
  }

  /// Image columns [x0, x0 + count) of the rows that windows of so many output rows see.
  HWY_INLINE void interleave(const LaneRows (&at)[2], std::int64_t output_rows, std::int64_t x0, std::int64_t count,
                             std::int16_t* to) const {
    const ImageShape& x = p_.g.x;
    const std::int64_t width = x.h > 0 ? x.w : 0;
    // Numbers of columns, of which all may lie on one side of the image.
    const std::int64_t inside = std::clamp<std::int64_t>(-x0, 0, count);
    const std::int64_t inside_end = std::clamp<std::int64_t>(width - x0, inside, count);
    const std::int64_t step = pairs_ * kPairNumbers;
    const __m256i zero = _mm256_set1_epi16(static_cast<std::int16_t>(p_.form.zero));
    const auto fill = [&](std::int64_t first, std::int64_t last) HWY_ATTR {
      for (std::int64_t i = first * step; i < last * step; i += kLaneChannels) store_numbers(zero, to + i);
    };
    fill(0, inside);
    fill(inside_end, count);
    if (inside == inside_end) return;
    const std::int64_t pairs = std::max(window_pairs_, column_pairs(p_.g, output_rows));
    for (std::int64_t pair = 0; pair < pairs; pair += 2) {
      const FourRows rows = rows_at(at, 2 * pair, x0 + inside);
      std::int16_t* first = to + inside * step + pair * kPairNumbers;
      if (pair + 1 < pairs) {
        rows.is_plain ? interleave_rows<2, true>(rows, inside_end - inside, first)
                      : interleave_rows<2, false>(rows, inside_end - inside, first);
      } else {
        rows.is_plain ? interleave_rows<1, true>(rows, inside_end - inside, first)
                      : interleave_rows<1, false>(rows, inside_end - inside, first);
      }
    }
  }

  /// kPlain: as of FourRows.
  template <int kPairs, bool kPlain>
  HWY_INLINE void interleave_rows(const FourRows& rows, std::int64_t count, std::int16_t* to) const {
    const std::int64_t from_step = p_.g.x.w_stride;
    const std::int64_t to_step = pairs_ * kPairNumbers;
    const std::uint8_t* const(&at)[2][4] = rows.at;
    for (std::int64_t from = 0; count > 0; --count, from += from_step, to += to_step) {
      const auto row = [&](int i) HWY_ATTR {
        const __m256i bytes = load_lanes(at[0][i] + from, at[1][i] + from);
        return kPlain ? bytes : _mm256_xor_si256(_mm256_and_si256(bytes, rows.inside[i]), rows.flip[i]);
      };
      ops::HWY_NAMESPACE::unroll<kPairs>([&](auto pair) HWY_ATTR {
        const __m256i first = row(2 * pair);
        const __m256i second = row(2 * pair + 1);
        store_pairs(first, second, to + pair * kPairNumbers);
      });
    }
  }

  template <int kRows>
  HWY_INLINE void convolve_pixels(const std::int16_t* columns, std::int64_t pixels, const TileResult& y) const {
    if (kernel_ == 3 && stride_ == 1) return convolve_tiles<kRows, kMostTilePixels, 3, 1>(columns, pixels, y);
    if (kernel_ == 5 && stride_ == 1) return convolve_tiles<kRows, kMostTilePixels, 5, 1>(columns, pixels, y);
    if constexpr (kRows == 1) {
      if (kernel_ == 3 && stride_ == 2) return convolve_tiles<kRows, 2 * kTilePixels, 3, 2>(columns, pixels, y);
      if (kernel_ == 5 && stride_ == 2) return convolve_tiles<kRows, 2 * kTilePixels, 5, 2>(columns, pixels, y);
    }
    convolve_tiles<kRows, kTilePixels, 0, 0>(columns, pixels, y);
  }

  /// kMost: pixels of a tile. kKernel, kStride: of square windows with the same stride both ways; 0: any.
  template <int kRows, int kMost, int kKernel, int kStride>
  HWY_NOINLINE void convolve_tiles(const std::int16_t* columns, std::int64_t pixels, const TileResult& y) const {
    const std::int64_t step = p_.g.horizontal.stride * pairs_ * kPairNumbers;
    const auto tile = [&](auto size, std::int64_t i) HWY_ATTR {
      const std::int64_t by = i * y.pixel_step;
      convolve_tile<kRows, size, kKernel, kStride>(columns + i * step,
                                                   {{y.lanes[0] + by, y.lanes[1] + by}, y.row_step, y.pixel_step});
    };
    if constexpr (kMost == kMostTilePixels) {
      for (std::int64_t done = 0; done < pixels;) {
        const int size = next_tile(pixels - done);
        ops::HWY_NAMESPACE::unroll<kMost>([&](auto i) HWY_ATTR {
          constexpr int kSize = i + 1;
          if (size == kSize) tile(std::integral_constant<int, kSize>(), done);
        });
        done += size;
      }
    } else {
      ops::HWY_NAMESPACE::cover<kMost>(pixels, tile);  // what two tiles cover is computed once more
    }
  }

  template <int kRows, int kPixels, int kKernel, int kStride>
  HWY_INLINE void convolve_tile(const std::int16_t* columns, const TileResult& y) const {
    TileSums<kRows, kPixels> sums;
    if constexpr (kStride == 1) {
      for (int i = 0; i < 4; ++i) sum_dense<kKernel>(columns, i, sums);
    } else if constexpr (kStride == 2) {
      for (int i = 0; i < 4; ++i) sum_apart<kKernel>(columns, i, sums);
    } else {
      const std::int64_t pixel_step = p_.g.horizontal.stride * pairs_ * kPairNumbers;
      const std::int64_t count = window_pairs_ * p_.g.horizontal.kernel;
      for (int i = 0; i < 4; ++i) sum_channels(columns, i, pixel_step, count, sums);
    }
    finish_(sums, y);
  }

  template <int kRows, int kPixels>
  static HWY_INLINE void store_sums(const __m256i (&sums)[kRows][kPixels], int i, TileSums<kRows, kPixels>& result) {
    using ops::HWY_NAMESPACE::unroll;
    unroll<kRows>([&](auto row) HWY_ATTR {
      unroll<kPixels>([&](auto t) HWY_ATTR {
        _mm256_store_si256(reinterpret_cast<__m256i*>(result.numbers[i][row * kPixels + t]), sums[row][t]);
      });
    });
  }

  /// sum plus the products of pairs. In this order: gcc would add other products first, and run out of registers.
  static HWY_INLINE __m256i add_products(__m256i sum, __m256i pairs, __m256i weights) {
    return in_register(_mm256_add_epi32(sum, _mm256_madd_epi16(pairs, weights)));
  }

  static HWY_INLINE __m256i in_register(__m256i v) {
    return ops::HWY_NAMESPACE::in_register(hn::Vec<hn::CappedTag<std::int32_t, 8>>{v}).raw;
  }

  static HWY_INLINE __m256i load_register(const std::int16_t* from) { return in_register(load_numbers(from)); }

  /// The same, though it may have been loaded before: where gcc knew, it would keep more than there are registers.
  static HWY_INLINE __m256i load_again(const std::int16_t* from) {
    __m256i v;
    asm volatile("vmovdqa %1, %0" : "=x"(v) : "m"(*reinterpret_cast<const __m256i*>(from)));
    return v;
  }

  /// Channels 4i to 4i + 3 of each lane.
  template <int kRows, int kPixels>
  HWY_INLINE void sum_channels(const std::int16_t* columns, int i, std::int64_t pixel_step, std::int64_t count,
                               TileSums<kRows, kPixels>& result) const {
    using ops::HWY_NAMESPACE::unroll;
    const std::int64_t w_step = window_rows_ * kPairNumbers;
    const std::int16_t* w = weights_ + i * kLaneChannels;
    __m256i sums[kRows][kPixels];
    unroll<kRows>([&](auto row) HWY_ATTR { unroll<kPixels>([&](auto t) HWY_ATTR { sums[row][t] = start_[i]; }); });
    const std::int16_t* x = columns + i * kLaneChannels;
    for (std::int64_t left = count; left > 0; --left, w += w_step) {
      __m256i weights[kRows];
      unroll<kRows>([&](auto row) HWY_ATTR { weights[row] = load_numbers(w + row * kPairNumbers); });
      unroll<kPixels>([&](auto t) HWY_ATTR {
        const __m256i pairs = load_register(x + t * pixel_step);
        unroll<kRows>([&](auto row) HWY_ATTR { sums[row][t] = add_products(sums[row][t], pairs, weights[row]); });
      });
      // Rows that are summed together see all pairs of a column.
      x += kRows > 1 ? kPairNumbers : steps_[left];
    }
    store_sums(sums, i, result);
  }

  /// The same of square windows with stride 1, which see all pairs of a column.
  template <int kKernel, int kRows, int kPixels>
  HWY_INLINE void sum_dense(const std::int16_t* columns, int i, TileSums<kRows, kPixels>& result) const {
    using ops::HWY_NAMESPACE::unroll;
    constexpr int kPairs = (kKernel + 2) / 2;
    const std::int16_t* w = weights_ + i * kLaneChannels;
    const std::int16_t* x = columns + i * kLaneChannels;
    __m256i sums[kRows][kPixels];
    unroll<kRows>([&](auto row) HWY_ATTR { unroll<kPixels>([&](auto t) HWY_ATTR { sums[row][t] = start_[i]; }); });
    unroll<kKernel * kPairs>([&](auto step) __attribute__((always_inline)) HWY_ATTR {
      __m256i weights[kRows];
      unroll<kRows>([&](auto row) HWY_ATTR { weights[row] = load_numbers(w + (2 * step + row) * kPairNumbers); });
      unroll<kPixels>([&](auto t) __attribute__((always_inline)) HWY_ATTR {
        const std::int16_t* at = x + (kPairs * t + step) * kPairNumbers;
        const __m256i pairs = kKernel == 3 && kPixels <= kTilePixels ? load_register(at) : load_again(at);
        unroll<kRows>([&](auto row) HWY_ATTR { sums[row][t] = add_products(sums[row][t], pairs, weights[row]); });
      });
    });
    store_sums(sums, i, result);
  }

  /// The same with stride 2, of one row: windows see all pairs of a column but one.
  template <int kKernel, int kPixels>
  HWY_INLINE void sum_apart(const std::int16_t* columns, int i, TileSums<1, kPixels>& result) const {
    using ops::HWY_NAMESPACE::unroll;
    constexpr int kPairs = (kKernel + 1) / 2;
    const std::int16_t* w = weights_ + i * kLaneChannels;
    const std::int16_t* x = columns + i * kLaneChannels;
    __m256i sums[1][kPixels];
    unroll<kPixels>([&](auto t) HWY_ATTR { sums[0][t] = start_[i]; });
    unroll<kPairs>([&](auto pair) __attribute__((always_inline)) HWY_ATTR {
      __m256i weights[kKernel];
      unroll<kKernel>([&](auto kx) HWY_ATTR { weights[kx] = load_register(w + (kPairs * kx + pair) * kPairNumbers); });
      unroll<2 * kPixels + kKernel - 2>([&](auto column) __attribute__((always_inline)) HWY_ATTR {
        const __m256i pairs = load_register(x + ((kPairs + 1) * column + pair) * kPairNumbers);
        unroll<kKernel>([&](auto kx) __attribute__((always_inline)) HWY_ATTR {
          constexpr int t = (column - kx) / 2;
          if constexpr (column >= kx && (column - kx) % 2 == 0 && t < kPixels)
            sums[0][t] = add_products(sums[0][t], pairs, weights[kx]);
        });
      });
    });
    store_sums(sums, i, result);
  }

  const ByteImages& p_;
  LaneChannels lanes_;
  std::int64_t pairs_;
  std::int64_t window_rows_;
  std::int64_t window_pairs_;
  std::int32_t kernel_;  ///< of square windows with the same stride both ways, else 0
  std::int32_t stride_;
  Finish finish_;
  __m256i start_[4];
  std::int64_t steps_[kMaxWindowPairs + 1];  ///< from one pair of a window to the next in columns, by how many are left
  HWY_ALIGN std::int16_t weights_[kMaxWindowPairs * kPairNumbers];
};

/// Output rows [first, last) of kCount blocks, counted through all items.
template <std::size_t kCount, class Finish>
HWY_INLINE void convolve_band(const ByteImages& p, const PairBlock<Finish> (&blocks)[kCount], std::int64_t first,
                              std::int64_t last) {
  const ConvGeometry& g = p.g;
  const std::int64_t most = pixels_at_once(p);
  // What rows overwrite, later ones do not read; but a row itself does, unless all of it has been interleaved.
  const bool free = !p.overlaps || most == g.y.w;
  const std::int64_t at_once = free ? rows_at_once(g) : 1;
  const auto rows_from = [&](std::int64_t row) { return std::min({at_once, g.y.h - row % g.y.h, last - row}); };
  HWY_ALIGN std::int16_t columns[kMaxColumnPairs * kPairNumbers];
  for (std::int64_t row = first; row < last;) {
    const std::int64_t rows = rows_from(row);
    LaneRows at[2] = {{row / g.y.h, row % g.y.h}, {row / g.y.h, row % g.y.h}};
    row += rows;
    if (kCount == 1 && blocks[0].lanes_are_alike() && free && row < last && rows_from(row) == rows) {
      at[1] = {row / g.y.h, row % g.y.h};
      row += rows;
    }
    for (std::int64_t x = 0; x < g.y.w; x += most) {
      const std::int64_t pixels = std::min(most, g.y.w - x);
      std::int16_t* next = columns;
      for (const auto& block : blocks) {
        block.interleave_columns(at, rows, x, pixels, next);
        next += block.column_numbers(pixels);
      }
      next = columns;
      for (const auto& block : blocks) {
        block.convolve(at, rows, x, pixels, next);
        next += block.column_numbers(pixels);
      }
    }
  }
}

/// Output rows [begin, end) of all channels, which are those of kCount blocks.
template <class Finish, class Scaler, int... kBlock>
HWY_NOINLINE void convolve_blocks(const ByteImages& p, const Scaler& scaler, std::int64_t begin, std::int64_t end,
                                  std::integer_sequence<int, kBlock...>) {
  const PairBlock<Finish> blocks[] = {{p, scaler, lanes_from(kBlock * kBlockChannels, p.g.x.c)}...};
  convolve_band(p, blocks, begin, end);
}

/// Output rows [begin, end), counted through all items. Blocks follow each other over a band of rows, so that what
/// these read stays in a cache; where results are written over the operand, they go together.
template <class Finish, class Scaler>
HWY_NOINLINE void convolve_pairs(const ByteImages& p, const Scaler& scaler, std::int64_t begin, std::int64_t end) {
  const std::int64_t channels = p.g.x.c;
  switch (blocks_at_once(p)) {
    case 2: return convolve_blocks<Finish>(p, scaler, begin, end, std::make_integer_sequence<int, 2>());
    case 3: return convolve_blocks<Finish>(p, scaler, begin, end, std::make_integer_sequence<int, 3>());
    case 4: return convolve_blocks<Finish>(p, scaler, begin, end, std::make_integer_sequence<int, 4>());
    default: break;
  }
  constexpr std::int64_t kBandBytes = 65536;  // what the second cache keeps
  const std::int64_t row_bytes = std::max<std::int64_t>(p.g.x.w * channels, 1);
  const std::int64_t band = (kBandBytes / row_bytes / 4 + 1) * 4;  // whole numbers of what lanes compute at once
  for (std::int64_t first = begin; first < end; first += band)
    for (std::int64_t c = 0; c < channels; c += kBlockChannels) {
      const PairBlock<Finish> block[] = {{p, scaler, lanes_from(c, channels)}};
      convolve_band(p, block, first, std::min(first + band, end));
    }
}
#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
