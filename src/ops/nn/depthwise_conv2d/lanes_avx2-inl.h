// What the kernels of depthwise convolutions of bytes with AVX2 have in common (pairs_avx2-inl.h,
// tap_pairs_avx2-inl.h): blocks of channels in two lanes of 128 bits, pairs of bytes as numbers of 16 bits, which are
// multiplied and added in one step, and the last stage. A lane takes 16 channels, of which the last may overlap those
// before. Included by *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_DEPTHWISE_LANES_AVX2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_LANES_AVX2_INL_H_
#undef BANTAM_OPS_DEPTHWISE_LANES_AVX2_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_LANES_AVX2_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/activation_steps_simd-inl.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/byte_rows_avx2-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86

constexpr std::int64_t kLaneChannels = 16;
constexpr std::int64_t kBlockChannels = 2 * kLaneChannels;
constexpr std::int64_t kPairNumbers = 4 * kLaneChannels;  ///< int16 of the pairs of both lanes

/// The first channels of both lanes.
struct LaneChannels {
  std::int64_t first[2];
};

/// The lanes of the block from channel c on.
inline LaneChannels lanes_from(std::int64_t c, std::int64_t channels) {
  const auto channel = [&](std::int64_t lane) { return std::min(lane, channels - kLaneChannels); };
  return {{channel(c), channel(c + kLaneChannels < channels ? c + kLaneChannels : c)}};
}

/// 32 bytes, 16 from each place.
HWY_INLINE __m256i load_lanes(const void* a, const void* b) {
  const __m128i low = _mm_loadu_si128(static_cast<const __m128i*>(a));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), _mm_loadu_si128(static_cast<const __m128i*>(b)), 1);
}

HWY_INLINE void store_numbers(__m256i v, std::int16_t* to) { _mm256_store_si256(reinterpret_cast<__m256i*>(to), v); }

HWY_INLINE __m256i load_numbers(const std::int16_t* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}

/// The bytes of both, which count as unsigned, in pairs: kPairNumbers.
HWY_INLINE void store_pairs(__m256i first, __m256i second, std::int16_t* to) {
  const __m256i bytes[2] = {_mm256_unpacklo_epi8(first, second), _mm256_unpackhi_epi8(first, second)};
  ops::HWY_NAMESPACE::unroll<4>([&](auto i) HWY_ATTR {
    const __m256i zero = _mm256_setzero_si256();
    store_numbers(i % 2 == 0 ? _mm256_unpacklo_epi8(bytes[i / 2], zero) : _mm256_unpackhi_epi8(bytes[i / 2], zero),
                  to + i * kLaneChannels);
  });
}

/// Sums of weights, of four channels of each lane in each vector.
struct WeightSums {
  __m256i of[4] = {};
};

/// The same of weights, which are signed and are added to `sums`.
HWY_INLINE void store_weights(__m256i first, __m256i second, std::int16_t* to, WeightSums& sums) {
  const __m256i bytes[2] = {_mm256_unpacklo_epi8(first, second), _mm256_unpackhi_epi8(first, second)};
  ops::HWY_NAMESPACE::unroll<4>([&](auto i) HWY_ATTR {
    const __m256i pairs = bytes[i / 2];
    const __m256i upper = i % 2 == 0 ? _mm256_unpacklo_epi8(pairs, pairs) : _mm256_unpackhi_epi8(pairs, pairs);
    const __m256i w = _mm256_srai_epi16(upper, 8);
    store_numbers(w, to + i * kLaneChannels);
    sums.of[i] = _mm256_add_epi32(sums.of[i], _mm256_madd_epi16(w, _mm256_set1_epi16(1)));
  });
}

/// What the sums of a block start at: the bias, or 0 where that is null, with the zero point of the image taken off.
HWY_INLINE void start_sums(const WeightSums& sums, std::int32_t zero, const std::int32_t* bias,
                           const LaneChannels& lanes, __m256i (&start)[4]) {
  for (int i = 0; i < 4; ++i) {
    start[i] = _mm256_mullo_epi32(sums.of[i], _mm256_set1_epi32(-zero));
    if (bias != nullptr)
      start[i] = _mm256_add_epi32(start[i], load_lanes(bias + lanes.first[0] + 4 * i, bias + lanes.first[1] + 4 * i));
  }
}

/// Arrays with a number per channel, put in the order of lanes; at most three.
class ChannelOrder {
 public:
  explicit ChannelOrder(const LaneChannels& lanes) : lanes_(lanes) {}

  template <typename T>
  const T* operator()(const T* from) {
    static_assert(sizeof(T) == sizeof(std::int32_t));
    if (from == nullptr) return nullptr;
    T* to = reinterpret_cast<T*>(numbers_[used_++]);
    for (int i = 0; i < 8; ++i) __builtin_memcpy(to + 4 * i, from + lanes_.first[i % 2] + i / 2 * 4, 4 * sizeof(T));
    return to;
  }

 private:
  const LaneChannels& lanes_;
  std::int32_t numbers_[3][2 * kLaneChannels];
  int used_ = 0;
};

/// Where the pixels of a tile go.
struct TileResult {
  std::uint8_t* lanes[2];  ///< of the first pixel
  std::int64_t row_step;
  std::int64_t pixel_step;
};

/// Sums of a tile of kRows rows and kPixels columns: those of four channels of each lane follow each other.
template <int kRows, int kPixels>
struct TileSums {
  static constexpr int kCount = kRows * kPixels;
  HWY_ALIGN std::int32_t numbers[4][kCount][8];
};

/// Numbers of a tile become bytes: number(i, v) is what ByteRows takes instead of vector v of channels i. kPlain: what
/// the rows' is_plain() says, or false.
template <bool kPlain, int kRows, int kPixels, class F>
HWY_INLINE void store_tile(const ops::HWY_NAMESPACE::ByteRows& bytes, const TileSums<kRows, kPixels>& sums,
                           const TileResult& y, F number) {
  const hn::CappedTag<std::int32_t, 8> d;
  for (int row = 0; row < kRows; ++row)
    for (int pixel = 0; pixel < kPixels; ++pixel) {
      hn::Vec<decltype(d)> v[4];
      ops::HWY_NAMESPACE::unroll<4>(
          [&](auto i) HWY_ATTR { v[i] = number(i, hn::Load(d, sums.numbers[i][row * kPixels + pixel])); });
      const std::int64_t at = row * y.row_step + pixel * y.pixel_step;
      bytes.store_lanes<kPlain>(v, y.lanes[0] + at, y.lanes[1] + at);
    }
}

template <class Scale>
HWY_INLINE bool are_usual(const Scale (&of)[4]) {
  return of[0].is_usual() && of[1].is_usual() && of[2].is_usual() && of[3].is_usual();
}

/// The last stage of a block: sums that begin with the bias, if that is an integer, become bytes.
class AffinePairs {
 public:
  HWY_INLINE AffinePairs(const AffineScaler& scaler, const LaneChannels& lanes)
      : AffinePairs(scaler, ordered(scaler, ChannelOrder(lanes))) {}

  const std::int32_t* bias() const { return scaler_->bias; }

  template <int kRows, int kPixels>
  HWY_INLINE void operator()(TileSums<kRows, kPixels>& sums, const TileResult& y) const {
    if (!is_usual_) return store<false>(sums, y);
    if (!scaler_->has_activation() && bytes_.is_plain()) return store_rounded<true, true>(sums, y);
    store<true>(sums, y);
  }

 private:
  using D32 = hn::CappedTag<std::int32_t, 8>;
  using Scale = ops::HWY_NAMESPACE::AffineVector<D32>;

  template <bool kUsual, bool kPlain, int kRows, int kPixels>
  HWY_INLINE void store_rounded(const TileSums<kRows, kPixels>& sums, const TileResult& y) const {
    store_tile<kPlain>(bytes_, sums, y,
                       [&](auto i, auto v) HWY_ATTR { return scale_[i].template rounded_total<kUsual>(v); });
  }

  template <bool kUsual, int kRows, int kPixels>
  HWY_INLINE void store(TileSums<kRows, kPixels>& sums, const TileResult& y) const {
    const D32 d;
    if (!scaler_->has_activation()) return store_rounded<kUsual, false>(sums, y);
    const bool is_short = ops::HWY_NAMESPACE::with_short_steps(*scaler_, [&](const auto& steps) HWY_ATTR {
      const auto* here = &steps;
      // So that a table stays in memory: in registers others would have no room.
      if constexpr (sizeof(*here) > sizeof(hn::Vec<D32>)) asm volatile("" : "+r"(here));
      store_tile<false>(bytes_, sums, y,
                        [&](auto i, auto v) HWY_ATTR { return scale_[i].template activated<kUsual>(*here, v); });
    });
    if (is_short) return;
    constexpr int kCount = kRows * kPixels;
    ops::HWY_NAMESPACE::unroll<4>([&](auto i) HWY_ATTR {
      for (std::int32_t(&v)[8] : sums.numbers[i]) hn::Store(hn::BitCast(d, scale_[i].argument(hn::Load(d, v))), d, v);
    });
    round_activated(*scaler_, sums.numbers[0][0], 4 * 8 * kCount);
    store_tile<false>(bytes_, sums, y, [](auto, auto v) HWY_ATTR { return v; });
  }

  static AffineScaler ordered(AffineScaler s, ChannelOrder&& order) {
    s.bias = nullptr;
    s.real_bias = order(s.real_bias);
    if (s.per_channel) s.scale = order(s.scale);
    return s;
  }

  HWY_INLINE AffinePairs(const AffineScaler& s, const AffineScaler& ordered)
      : scale_{Scale(D32(), ordered, 0, 8), Scale(D32(), ordered, 8, 8), Scale(D32(), ordered, 16, 8),
               Scale(D32(), ordered, 24, 8)},
        bytes_(s.zero_point, s.minimum, s.maximum, s.flip),
        scaler_(&s),
        is_usual_(are_usual(scale_)) {}

  Scale scale_[4];
  ops::HWY_NAMESPACE::ByteRows bytes_;
  const AffineScaler* scaler_;
  bool is_usual_;
};

/// The same for TensorFlow Lite's arithmetic.
class RequantizePairs {
 public:
  HWY_INLINE RequantizePairs(const Requantizer& requantizer, const LaneChannels& lanes)
      : RequantizePairs(requantizer, ordered(requantizer, ChannelOrder(lanes))) {}

  const std::int32_t* bias() const { return bias_; }

  template <int kRows, int kPixels>
  HWY_INLINE void operator()(const TileSums<kRows, kPixels>& sums, const TileResult& y) const {
    const auto store = [&](auto usual) HWY_ATTR {
      store_tile<false>(bytes_, sums, y,
                        [&](auto i, auto v) HWY_ATTR { return requantize_[i].template rounded_total<usual>(v); });
    };
    is_usual_ ? store(std::true_type()) : store(std::false_type());
  }

 private:
  using D32 = hn::CappedTag<std::int32_t, 8>;
  using Requantize = ops::HWY_NAMESPACE::RequantizeVector<D32>;

  static Requantizer ordered(Requantizer r, ChannelOrder&& order) {
    r.bias = nullptr;
    r.multiplier = order(r.multiplier);
    r.shift = order(r.shift);
    return r;
  }

  HWY_INLINE RequantizePairs(const Requantizer& r, const Requantizer& ordered)
      : requantize_{Requantize(D32(), ordered, 0, 8), Requantize(D32(), ordered, 8, 8),
                    Requantize(D32(), ordered, 16, 8), Requantize(D32(), ordered, 24, 8)},
        bytes_(r.zero_point, r.minimum, r.maximum, 0),
        bias_(r.bias),
        is_usual_(are_usual(requantize_)) {}

  Requantize requantize_[4];
  ops::HWY_NAMESPACE::ByteRows bytes_;
  const std::int32_t* bias_;
  bool is_usual_;
};

#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
