// Blocks of 64 channels of depthwise convolutions of bytes (tap_quads_simd-inl.h): four vectors interleaved to quads,
// and the last stage, which makes bytes of a block's sums. These come in the order that interleaving has made and that
// packing to bytes unmakes. Included by *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_DEPTHWISE_QUAD_BLOCKS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_QUAD_BLOCKS_SIMD_INL_H_
#undef BANTAM_OPS_DEPTHWISE_QUAD_BLOCKS_SIMD_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_QUAD_BLOCKS_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/byte_rows_avx512-inl.h"
#include "ops/common/quad_products_simd-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86

using D8 = hn::CappedTag<std::uint8_t, 64>;
using D32 = hn::CappedTag<std::int32_t, 16>;
using V8 = hn::Vec<D8>;
using V32 = hn::Vec<D32>;
using ops::HWY_NAMESPACE::add_quad_products;
constexpr std::int64_t kBlock = kByteBlock;

/// The 64 channels of two rows as pairs of bytes.
struct BytePairs {
  using D16 = hn::Repartition<std::uint16_t, D8>;
  hn::Vec<D16> low;
  hn::Vec<D16> high;

  HWY_INLINE BytePairs(V8 a, V8 b)
      : low(hn::BitCast(D16(), hn::InterleaveLower(D8(), a, b))),
        high(hn::BitCast(D16(), hn::InterleaveUpper(D8(), a, b))) {}
};

/// The 64 channels of four rows as quads: quad i of vector j belongs to channel 16 (i / 4) + 4 j + i % 4.
struct Quads {
  V8 v[4];

  HWY_INLINE Quads(V8 a, V8 b, V8 c, V8 d) : Quads(BytePairs(a, b), BytePairs(c, d)) {}
  HWY_INLINE Quads(const BytePairs& ab, const BytePairs& cd) {
    const BytePairs::D16 d16;
    v[0] = hn::BitCast(D8(), hn::InterleaveLower(d16, ab.low, cd.low));
    v[1] = hn::BitCast(D8(), hn::InterleaveUpper(d16, ab.low, cd.low));
    v[2] = hn::BitCast(D8(), hn::InterleaveLower(d16, ab.high, cd.high));
    v[3] = hn::BitCast(D8(), hn::InterleaveUpper(d16, ab.high, cd.high));
  }
  HWY_INLINE void store(std::uint8_t* to) const {
    for (int j = 0; j < 4; ++j) hn::Store(v[j], D8(), to + j * kBlock);
  }
};

/// The channels of a block: `count` from `first` on, which come again every `width` bytes of a vector, once for each of
/// its pixels.
struct BlockChannels {
  std::int64_t first;
  std::int64_t count;
  std::int64_t width;

  std::int64_t pixels() const { return kBlock / width; }
};

/// The 32-bit `values` of a block's channels, or one for all, as the sums are ordered.
HWY_INLINE void order_channels(const void* values, bool several, const BlockChannels& channels, std::int32_t* to) {
  const D32 d;
  // Bits of whatever type: floats too.
  const auto* bits = static_cast<const std::int32_t*>(values);
  std::int32_t first;
  __builtin_memcpy(&first, values, sizeof first);
  V32 in[4];
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = 16 * i % channels.width;
    const std::int64_t left = std::clamp<std::int64_t>(channels.count - at, 0, 16);
    in[i] = several ? hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(left)), d, bits + (left > 0 ? at : 0))
                    : hn::Set(d, first);
  }
  // Lane group l of vector i becomes lane group i of vector l.
  HWY_ALIGN std::int32_t rows[kBlock];
  for (int i = 0; i < 4; ++i) hn::Store(in[i], d, rows + 16 * i);
  const hn::CappedTag<std::int32_t, 4> quarter;
  for (int i = 0; i < 4; ++i)
    for (int l = 0; l < 4; ++l) hn::Store(hn::Load(quarter, rows + 16 * i + 4 * l), quarter, to + 16 * l + 4 * i);
}

/// A block's scalers, made of `count` arrays of one number per channel, put in order.
template <int kCount>
struct OrderedChannels {
  HWY_ALIGN std::int32_t numbers[kCount][kBlock];

  template <typename T>
  const T* as(int i) const {
    return reinterpret_cast<const T*>(numbers[i]);
  }
};

/// The bytes of some pixels, in the order of channels: number(i, j) is what `pack` takes instead of sums j of pixel i.
template <bool kPlain, int kPixels, class F>
HWY_INLINE void pack_pixels(const ops::HWY_NAMESPACE::BytePacker& pack, V8 (&bytes)[kPixels], F number) {
  using std::integral_constant;
  // Asked for, since a call would put all sums into memory.
  ops::HWY_NAMESPACE::unroll<kPixels>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
    const auto half = [&](auto first, auto second) HWY_ATTR {
      return pack.template halves<kPlain>(number(i, first).raw, number(i, second).raw);
    };
    const __m512i low = half(integral_constant<int, 0>(), integral_constant<int, 1>());
    bytes[i] = V8{pack.template bytes<kPlain>(low, half(integral_constant<int, 2>(), integral_constant<int, 3>()))};
  });
}

/// Calls f(sums, bytes) of copies: what a function that is not in line sees would else lie in memory for all others.
template <int kPixels, class F>
HWY_INLINE void with_copies(const V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels], F f) {
  using ops::HWY_NAMESPACE::unroll;
  V32 copied[kPixels][4];
  V8 result[kPixels];
  unroll<kPixels>([&](auto i) HWY_ATTR { unroll<4>([&](auto j) HWY_ATTR { copied[i][j] = sums[i][j]; }); });
  f(copied, result);
  unroll<kPixels>([&](auto i) HWY_ATTR { bytes[i] = result[i]; });
}

/// What scales the sums of a block of channels, which begin with the bias if that is an integer.
class AffineScales {
 public:
  /// Of sums j.
  HWY_INLINE V32 bias(int j) const { return bias_[j]; }

 protected:
  HWY_INLINE AffineScales(const AffineScaler& scaler, const BlockChannels& channels)
      : AffineScales(scaler, ordered(scaler.from_channel(channels.first), channels)) {}

  using Scale = ops::HWY_NAMESPACE::AffineVector<D32>;

  V32 bias_[4];
  Scale scale_[4];
  ops::HWY_NAMESPACE::BytePacker pack_;
  bool is_usual_;  ///< AffineVector's is_usual() of all four

 private:
  using Ordered = OrderedChannels<2>;

  static HWY_INLINE Ordered ordered(const AffineScaler& s, const BlockChannels& channels) {
    Ordered result{};
    if (s.bias != nullptr) order_channels(s.bias, true, channels, result.numbers[0]);
    if (s.real_bias != nullptr) order_channels(s.real_bias, true, channels, result.numbers[0]);
    order_channels(s.scale, s.per_channel, channels, result.numbers[1]);
    return result;
  }
  static HWY_INLINE Scale make(AffineScaler s, const Ordered& o, std::int64_t j) {
    s.bias = nullptr;
    if (s.has_activation()) s.real_bias = o.as<float>(0);
    s.scale = o.as<float>(1);
    s.per_channel = true;
    return Scale(D32(), s, 16 * j, 16);
  }
  HWY_INLINE AffineScales(const AffineScaler& s, const Ordered& o)
      : scale_{make(s, o, 0), make(s, o, 1), make(s, o, 2), make(s, o, 3)},
        pack_(s.zero_point, s.minimum, s.maximum, s.flip),
        is_usual_(scale_[0].is_usual() && scale_[1].is_usual() && scale_[2].is_usual() && scale_[3].is_usual()) {
    for (int j = 0; j < 4; ++j)
      bias_[j] = s.has_activation() ? hn::Zero(D32()) : hn::Load(D32(), o.as<std::int32_t>(0) + 16 * j);
  }
};

/// The last stage of a block of channels: bytes of the sums of some pixels. For scalers without an activation.
class AffineBlock : public AffineScales {
 public:
  HWY_INLINE AffineBlock(const AffineScaler& scaler, const BlockChannels& channels) : AffineScales(scaler, channels) {}

  template <int kPixels>
  HWY_INLINE void operator()(const V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    if (!is_usual_)
      return with_copies(sums, bytes, [&](auto& copied, auto& result) HWY_ATTR { pack_unusual(copied, result); });
    pack_.is_plain() ? pack_as<true, true>(sums, bytes) : pack_as<true, false>(sums, bytes);
  }

 private:
  template <bool kUsual, bool kPlain, int kPixels>
  HWY_INLINE void pack_as(const V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    pack_pixels<kPlain>(pack_, bytes,
                        [&](auto i, auto j) HWY_ATTR { return scale_[j].template rounded_total<kUsual>(sums[i][j]); });
  }
  /// Apart, so that the registers are the usual way's.
  template <int kPixels>
  HWY_NOINLINE void pack_unusual(const V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    pack_as<false, false>(sums, bytes);
  }
};

/// The same for scalers with an activation for which with_short_steps gives Steps.
template <class Steps>
class ShortStepsBlock : public AffineScales {
 public:
  HWY_INLINE ShortStepsBlock(const AffineScaler& scaler, const BlockChannels& channels)
      : AffineScales(scaler, channels), steps_(scaler.output_scale) {}

  template <int kPixels>
  HWY_INLINE void operator()(const V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    if (is_usual_) return pack_as<true>(sums, bytes);
    with_copies(sums, bytes, [&](auto& copied, auto& result) HWY_ATTR { pack_unusual(copied, result); });
  }

 private:
  template <bool kUsual, int kPixels>
  HWY_INLINE void pack_as(const V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    pack_pixels<false>(pack_, bytes, [&](auto i, auto j) HWY_ATTR {
      return scale_[j].template activated<kUsual>(steps_, sums[i][j]);
    });
  }
  template <int kPixels>
  HWY_NOINLINE void pack_unusual(const V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    pack_as<false>(sums, bytes);
  }

  Steps steps_;
};

/// The same for scalers with any activation.
class ActivatedBlock : public AffineScales {
 public:
  HWY_INLINE ActivatedBlock(const AffineScaler& scaler, const BlockChannels& channels)
      : AffineScales(scaler, channels), scaler_(&scaler) {}

  template <int kPixels>
  HWY_INLINE void operator()(const V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    using ops::HWY_NAMESPACE::unroll;
    HWY_ALIGN std::int32_t numbers[kPixels * kBlock];
    unroll<kPixels>([&](auto i) HWY_ATTR {
      unroll<4>([&](auto j) HWY_ATTR {
        hn::Store(hn::BitCast(D32(), scale_[j].argument(sums[i][j])), D32(), numbers + i * kBlock + 16 * j);
      });
    });
    round_activated(*scaler_, numbers, kPixels * kBlock);
    pack_pixels<false>(pack_, bytes,
                       [&](auto i, auto j) HWY_ATTR { return hn::Load(D32(), numbers + i * kBlock + 16 * j); });
  }

 private:
  const AffineScaler* scaler_;
};

/// The same for TensorFlow Lite's arithmetic.
class RequantizeBlock {
 public:
  HWY_INLINE RequantizeBlock(const Requantizer& requantizer, const BlockChannels& channels)
      : RequantizeBlock(requantizer, ordered(requantizer.from_channel(channels.first), channels)) {}

  HWY_INLINE V32 bias(int j) const { return bias_[j]; }

  template <int kPixels>
  HWY_INLINE void operator()(const V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    if (is_usual_) return pack_as<true>(sums, bytes);
    with_copies(sums, bytes, [&](auto& copied, auto& result) HWY_ATTR { pack_unusual(copied, result); });
  }

 private:
  using Requantize = ops::HWY_NAMESPACE::RequantizeVector<D32>;
  using Ordered = OrderedChannels<3>;

  template <bool kUsual, int kPixels>
  HWY_INLINE void pack_as(const V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    pack_pixels<false>(pack_, bytes, [&](auto i, auto j) HWY_ATTR {
      return requantize_[j].template rounded_total<kUsual>(sums[i][j]);
    });
  }
  template <int kPixels>
  HWY_NOINLINE void pack_unusual(V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    pack_as<false>(sums, bytes);
  }

  static HWY_INLINE Ordered ordered(const Requantizer& r, const BlockChannels& channels) {
    Ordered result{};
    if (r.bias != nullptr) order_channels(r.bias, true, channels, result.numbers[0]);
    order_channels(r.multiplier, true, channels, result.numbers[1]);
    order_channels(r.shift, true, channels, result.numbers[2]);
    return result;
  }
  static HWY_INLINE Requantize make(Requantizer r, const Ordered& o, std::int64_t j) {
    r.bias = nullptr;
    r.multiplier = o.as<std::int32_t>(1);
    r.shift = o.as<std::int32_t>(2);
    return Requantize(D32(), r, 16 * j, 16);
  }
  HWY_INLINE RequantizeBlock(const Requantizer& r, const Ordered& o)
      : requantize_{make(r, o, 0), make(r, o, 1), make(r, o, 2), make(r, o, 3)},
        pack_(r.zero_point, r.minimum, r.maximum, 0),
        is_usual_(requantize_[0].is_usual() && requantize_[1].is_usual() && requantize_[2].is_usual() &&
                  requantize_[3].is_usual()) {
    for (int j = 0; j < 4; ++j) bias_[j] = hn::Load(D32(), o.as<std::int32_t>(0) + 16 * j);
  }

  V32 bias_[4];
  Requantize requantize_[4];
  ops::HWY_NAMESPACE::BytePacker pack_;
  bool is_usual_;
};
#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
