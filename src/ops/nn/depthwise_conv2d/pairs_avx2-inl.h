// Depthwise convolution of bytes with AVX2, for the integer kernels of depthwise_conv2d and conv2d_affine; exact. Of
// each image column two kernel rows at a time are widened to 16 bits and interleaved, so that a pair holds one channel
// of them and neighbouring windows share it; of an odd number of rows the last is interleaved with itself, one column
// on. Blocks of 16 channels, the last of which may overlap the one before; the sums of a block come in an order that
// interleaving has made and that packing to bytes unmakes. Columns outside the image hold the zero point. Included by
// *_simd.cpp files inside Highway's per-target compilation; buffers of 8 KiB lie on the stack.
#if defined(BANTAM_OPS_DEPTHWISE_PAIRS_AVX2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_PAIRS_AVX2_INL_H_
#undef BANTAM_OPS_DEPTHWISE_PAIRS_AVX2_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_PAIRS_AVX2_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/byte_rows_avx2-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"
#include "ops/nn/depthwise_conv2d/quads_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86

constexpr std::int64_t kPairChannels = 16;
constexpr std::int64_t kPairBytes = 4 * kPairChannels;  ///< of the pairs of a block
constexpr std::int64_t kMaxPairs = 28;                  ///< that a window has
constexpr std::int64_t kMaxColumnPairs = 96;            ///< that are interleaved at once

/// Pairs of one column.
inline std::int64_t column_pairs(const ConvGeometry& g) { return (g.vertical.kernel + 1) / 2; }

/// Pairs of a window.
inline std::int64_t window_pairs(const ConvGeometry& g) {
  const std::int64_t of_last_row = g.vertical.kernel % 2 * ((g.horizontal.kernel + std::int64_t{1}) / 2);
  return g.vertical.kernel / 2 * static_cast<std::int64_t>(g.horizontal.kernel) + of_last_row;
}

/// Is the window dense and small enough for the buffers, is there a block of channels, and do all its columns serve the
/// windows beside it? Where they do not, interleaving costs more than it saves.
inline bool pairs_fit(const ConvGeometry& g) {
  return g.x.c >= kPairChannels && g.horizontal.dilation == 1 && g.horizontal.stride == 1 &&
         window_pairs(g) <= kMaxPairs && column_pairs(g) * g.horizontal.kernel <= kMaxColumnPairs;
}

/// Arrays of a block's channels, put in the order of interleaving; at most three.
class ChannelOrder {
 public:
  template <typename T>
  const T* operator()(const T* from) {
    static_assert(sizeof(T) == sizeof(std::int32_t));
    if (from == nullptr) return nullptr;
    constexpr int kOrder[4] = {0, 2, 1, 3};
    T* to = reinterpret_cast<T*>(numbers_[used_++]);
    for (int i = 0; i < 4; ++i) __builtin_memcpy(to + 4 * i, from + 4 * kOrder[i], 4 * sizeof(T));
    return to;
  }

 private:
  std::int32_t numbers_[3][kPairChannels];
  int used_ = 0;
};

/// The last stage of a block: sums of two pixels become bytes.
class AffinePairs {
 public:
  using V = hn::Vec<hn::CappedTag<std::int32_t, 8>>;

  HWY_INLINE AffinePairs(const AffineScaler& scaler, std::int64_t first, ChannelOrder&& order = ChannelOrder())
      : AffinePairs(scaler, ordered(scaler.from_channel(first), order)) {}

  HWY_INLINE void operator()(V (&sums)[4], std::uint8_t* a, std::uint8_t* b) const {
    using ops::HWY_NAMESPACE::unroll;
    if (scaler_->has_activation()) {
      unroll<4>([&](auto i) HWY_ATTR { sums[i] = hn::BitCast(D32(), scale_[i % 2].real(sums[i])); });
      ops::HWY_NAMESPACE::quantize_vectors(D32(), *scaler_, sums);
    } else {
      unroll<4>([&](auto i) HWY_ATTR { sums[i] = scale_[i % 2].rounded(sums[i]); });
    }
    bytes_.store_interleaved(sums, a, b);
  }

 private:
  using D32 = hn::CappedTag<std::int32_t, 8>;
  using Scale = ops::HWY_NAMESPACE::AffineVector<D32>;

  static AffineScaler ordered(AffineScaler s, ChannelOrder& order) {
    s.bias = order(s.bias);
    s.real_bias = order(s.real_bias);
    if (s.per_channel) s.scale = order(s.scale);
    return s;
  }

  HWY_INLINE AffinePairs(const AffineScaler& s, const AffineScaler& ordered)
      : scale_{Scale(D32(), ordered, 0, 8), Scale(D32(), ordered, 8, 8)},
        bytes_(s.has_activation() ? ops::HWY_NAMESPACE::ByteRows(0, -128, 127, s.flip)
                                  : ops::HWY_NAMESPACE::ByteRows(s.zero_point, s.minimum, s.maximum, s.flip)),
        scaler_(&s) {}

  Scale scale_[2];
  ops::HWY_NAMESPACE::ByteRows bytes_;
  const AffineScaler* scaler_;
};

/// The same for TensorFlow Lite's arithmetic.
class RequantizePairs {
 public:
  using V = hn::Vec<hn::CappedTag<std::int32_t, 8>>;

  HWY_INLINE RequantizePairs(const Requantizer& requantizer, std::int64_t first, ChannelOrder&& order = ChannelOrder())
      : RequantizePairs(ordered(requantizer.from_channel(first), order)) {}

  HWY_INLINE void operator()(V (&sums)[4], std::uint8_t* a, std::uint8_t* b) const {
    ops::HWY_NAMESPACE::unroll<4>([&](auto i) HWY_ATTR { sums[i] = requantize_[i % 2].rounded(sums[i]); });
    bytes_.store_interleaved(sums, a, b);
  }

 private:
  using D32 = hn::CappedTag<std::int32_t, 8>;
  using Requantize = ops::HWY_NAMESPACE::RequantizeVector<D32>;

  static Requantizer ordered(Requantizer r, ChannelOrder& order) {
    r.bias = order(r.bias);
    r.multiplier = order(r.multiplier);
    r.shift = order(r.shift);
    return r;
  }

  HWY_INLINE explicit RequantizePairs(const Requantizer& r)
      : requantize_{Requantize(D32(), r, 0, 8), Requantize(D32(), r, 8, 8)},
        bytes_(r.zero_point, r.minimum, r.maximum, 0) {}

  Requantize requantize_[2];
  ops::HWY_NAMESPACE::ByteRows bytes_;
};

/// A block of channels; what is the same for all its pixels.
template <class Finish>
class PairBlock {
 public:
  template <class Scaler>
  HWY_INLINE PairBlock(const QuadProblem& p, const Scaler& scaler, std::int64_t first)
      : p_(p), first_(first), is_signed_(p.form.flip != 0), finish_(scaler, first) {
    load_weights();
  }

  /// `count` output pixels of row oy of item n, from column ox on.
  HWY_INLINE void convolve(std::int64_t n, std::int64_t oy, std::int64_t ox, std::int64_t count) const {
    const std::int64_t taps = p_.g.horizontal.kernel;
    const std::int64_t most = kMaxColumnPairs / column_pairs(p_.g) - taps + 1;
    HWY_ALIGN std::int16_t columns[kMaxColumnPairs * 2 * kPairChannels];
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t pixels = std::min(most, count - done);
      const std::int64_t x0 = window_origin(p_.g.horizontal, ox + done);
      const auto fetch = is_signed_ ? &PairBlock::interleave<true> : &PairBlock::interleave<false>;
      (this->*fetch)(n, window_origin(p_.g.vertical, oy), x0, pixels - 1 + taps, columns);
      std::uint8_t* y = p_.y + p_.g.y.offset(n, oy, ox + done) + first_;
      const std::int64_t step = column_numbers();
      std::int64_t i = 0;
      for (; i + 4 <= pixels; i += 4) convolve_pixels<4>(columns + i * step, y + i * p_.g.y.w_stride);
      for (; i < pixels; ++i) convolve_pixels<1>(columns + i * step, y + i * p_.g.y.w_stride);
      done += pixels;
    }
  }

 private:
  using V = typename Finish::V;

  std::int64_t column_numbers() const { return column_pairs(p_.g) * 2 * kPairChannels; }

  static HWY_INLINE __m256i widen_weights(const std::int8_t* from) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }

  /// The pairs of `a` and `b`, in the order of interleaving.
  static HWY_INLINE void store_pairs(__m256i a, __m256i b, std::int16_t* to) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), _mm256_unpacklo_epi16(a, b));
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + kPairChannels), _mm256_unpackhi_epi16(a, b));
  }

  /// The weights of a window's pairs, where in the columns these lie, and what sums start at: the zero point taken off.
  HWY_INLINE void load_weights() {
    const std::int64_t taps = p_.g.horizontal.kernel;
    const std::int64_t rows = p_.g.vertical.kernel;
    const std::int64_t channels = p_.g.x.c;
    const std::int8_t* w = p_.w + first_;
    std::int16_t* to = weights_;
    for (std::int64_t ky = 0; ky + 2 <= rows; ky += 2)
      for (std::int64_t kx = 0; kx < taps; ++kx, to += 2 * kPairChannels) {
        offsets_[pairs_++] = kx * column_numbers() + ky * kPairChannels;
        store_pairs(widen_weights(w + (ky * taps + kx) * channels),
                    widen_weights(w + ((ky + 1) * taps + kx) * channels), to);
      }
    if (rows % 2 != 0)
      for (std::int64_t kx = 0; kx < taps; kx += 2, to += 2 * kPairChannels) {
        const std::int8_t* at = w + ((rows - 1) * taps + kx) * channels;
        offsets_[pairs_++] = kx * column_numbers() + (rows - 1) * kPairChannels;
        store_pairs(widen_weights(at), kx + 1 < taps ? widen_weights(at + channels) : _mm256_setzero_si256(), to);
      }
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (std::int64_t pair = 0; pair < pairs_; ++pair)
      for (int j = 0; j < 2; ++j) sums[j] = _mm256_add_epi32(sums[j], _mm256_madd_epi16(weight(pair, j), ones));
    for (int j = 0; j < 2; ++j) start_[j] = _mm256_mullo_epi32(sums[j], _mm256_set1_epi32(-zero()));
  }

  __m256i weight(std::int64_t pair, int j) const {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(weights_ + (2 * pair + j) * kPairChannels));
  }

  /// The zero point of bytes as they lie.
  std::int32_t zero() const { return is_signed_ ? p_.form.zero - 128 : p_.form.zero; }

  /// A row of the image, or zero points.
  struct Row {
    const std::uint8_t* at = nullptr;  ///< column 0; null: zero points
    std::int64_t step = 0;
    std::int64_t width = 0;
    __m256i outside;

    template <bool kSigned>
    HWY_INLINE __m256i load(std::int64_t column) const {
      if (at == nullptr || column < 0 || column >= width) return outside;
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + column * step));
      return kSigned ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
    }
  };

  Row row_at(std::int64_t n, std::int64_t iy) const {
    const ImageShape& x = p_.g.x;
    Row row{.outside = _mm256_set1_epi16(static_cast<std::int16_t>(zero()))};
    if (iy < 0 || iy >= x.h || x.w == 0) return row;
    row.at = p_.x + x.offset(n, iy, 0) + first_;
    row.step = x.w_stride;
    row.width = x.w;
    return row;
  }

  /// Image columns [x0, x0 + count) of the rows that the window from y0 on sees.
  template <bool kSigned>
  void interleave(std::int64_t n, std::int64_t y0, std::int64_t x0, std::int64_t count, std::int16_t* to) const {
    const std::int64_t rows = p_.g.vertical.kernel;
    const std::int64_t dilation = p_.g.vertical.dilation;
    const std::int64_t step = column_numbers();
    std::int64_t ky = 0;
    for (; ky + 2 <= rows; ky += 2) {
      const Row a = row_at(n, y0 + ky * dilation);
      const Row b = row_at(n, y0 + (ky + 1) * dilation);
      for (std::int64_t i = 0; i < count; ++i)
        store_pairs(a.template load<kSigned>(x0 + i), b.template load<kSigned>(x0 + i),
                    to + i * step + ky * kPairChannels);
    }
    if (ky == rows) return;
    const Row a = row_at(n, y0 + ky * dilation);
    __m256i first = a.template load<kSigned>(x0);
    for (std::int64_t i = 0; i < count; ++i) {
      const __m256i second = i + 1 < count ? a.template load<kSigned>(x0 + i + 1) : first;
      store_pairs(first, second, to + i * step + ky * kPairChannels);
      first = second;
    }
  }

  template <int kPixels>
  HWY_INLINE void convolve_pixels(const std::int16_t* columns, std::uint8_t* y) const {
    using ops::HWY_NAMESPACE::unroll;
    const std::int64_t pixel_step = column_numbers();
    __m256i sums[kPixels][2];
    unroll<kPixels>([&](auto i) HWY_ATTR { unroll<2>([&](auto j) HWY_ATTR { sums[i][j] = start_[j]; }); });
    const std::int64_t pairs = pairs_;
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const std::int16_t* x = columns + offsets_[pair];
      unroll<2>([&](auto j) HWY_ATTR {
        const __m256i w = weight(pair, j);
        unroll<kPixels>([&](auto i) HWY_ATTR {
          const auto* at = reinterpret_cast<const __m256i*>(x + i * pixel_step + j * kPairChannels);
          sums[i][j] = _mm256_add_epi32(sums[i][j], _mm256_madd_epi16(_mm256_load_si256(at), w));
        });
      });
    }
    const std::int64_t y_step = p_.g.y.w_stride;
    for (int i = 0; i < kPixels; i += 2) {
      const int next = std::min(i + 1, kPixels - 1);
      V two[4] = {V{sums[i][0]}, V{sums[i][1]}, V{sums[next][0]}, V{sums[next][1]}};
      finish_(two, y + i * y_step, y + next * y_step);
    }
  }

  const QuadProblem& p_;
  std::int64_t first_;
  bool is_signed_;
  Finish finish_;
  std::int64_t pairs_ = 0;
  __m256i start_[2];
  std::int64_t offsets_[kMaxPairs];
  HWY_ALIGN std::int16_t weights_[kMaxPairs * 2 * kPairChannels];
};

/// Output rows [begin, end), counted through all items.
template <class Finish, class Scaler>
HWY_NOINLINE void convolve_pairs(const QuadProblem& p, const Scaler& scaler, std::int64_t begin, std::int64_t end) {
  // What a band reads stays in the second cache.
  constexpr std::int64_t kBandBytes = 65536;
  convolve_blocks<kPairChannels, kBandBytes>(p, begin, end, [&](std::int64_t c) HWY_ATTR {
    return PairBlock<Finish>(p, scaler, std::min(c, p.g.x.c - kPairChannels));
  });
}
#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
