// The last stage of depthwise convolutions of bytes in flat rows (flat_bytes_simd-inl.h): vectors of sums become bytes.
// A block's numbers per channel are laid out so that a vector may begin at any channel and go on with the first behind
// the last. Included by *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_DEPTHWISE_FLAT_FINISH_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_FLAT_FINISH_SIMD_INL_H_
#undef BANTAM_OPS_DEPTHWISE_FLAT_FINISH_SIMD_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_FLAT_FINISH_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/byte_rows_avx2-inl.h"
#include "ops/common/byte_rows_avx512-inl.h"
#include "ops/common/byte_rows_neon.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/nn/depthwise_conv2d/flat_plan.h"
#include "ops/nn/depthwise_conv2d/row_groups_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

#if HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2))

/// Sums that are finished together: four vectors.
#if HWY_ARCH_ARM_A64
constexpr int kTileVectors = 2;
#else
constexpr int kTileVectors = 4;
#endif

/// Numbers behind the last channel: those of the first ones, again and again.
constexpr std::int64_t kWrapped = kSumLanes;

/// `numbers` has room for kWrapped behind `count` > 0.
template <typename T>
HWY_INLINE void wrap_channels(T* numbers, std::int64_t count) {
  for (std::int64_t i = 0; i < kWrapped; i += count)
    std::memcpy(numbers + count + i, numbers, static_cast<std::size_t>(std::min(count, kWrapped - i)) * sizeof(T));
}

/// A block's numbers of 32 bits, one per channel.
struct ChannelNumbers {
  HWY_ALIGN std::int32_t numbers[FlatPlan::kMostChannels + kWrapped];

  /// Those of `from`, which may be null.
  template <typename T>
  const T* set(const T* from, std::int64_t count) {
    static_assert(sizeof(T) == sizeof(std::int32_t));
    if (from == nullptr) return nullptr;
    std::memcpy(numbers, from, static_cast<std::size_t>(count) * sizeof(T));
    wrap_channels(numbers, count);
    return reinterpret_cast<const T*>(numbers);
  }
};

/// Where the bytes of a tile go: those of the first and the third sums, those of the others `step` behind them.
struct TileBytes {
  std::uint8_t* first;
  std::uint8_t* third;
  std::int64_t step;
};

#if HWY_ARCH_ARM_A64
using ByteRows = neon::ByteRows;
#else
using ByteRows = ops::HWY_NAMESPACE::ByteRows;
#endif

/// `columns`: bytes of a vector that are stored.
HWY_INLINE ByteRows byte_rows(std::int32_t zero_point, std::int32_t minimum, std::int32_t maximum, std::uint8_t flip,
                              std::int64_t columns) {
#if HWY_TARGET == HWY_AVX3_DL
  return {zero_point, minimum, maximum, flip, columns};
#else
  static_cast<void>(columns);  // all
  return {zero_point, minimum, maximum, flip};
#endif
}

/// What last stages know while compiling: AffineVector's and RequantizeVector's is_usual(), ByteRows' is_plain(), and
/// whether vectors are stored whole. Each may be false where it is true.
template <bool kIsUsual, bool kIsPlain, bool kIsWhole>
struct TileWay {
  static constexpr bool kUsual = kIsUsual;
  static constexpr bool kPlain = kIsPlain;
  static constexpr bool kWhole = kIsWhole;
};
using PlainWay = TileWay<true, true, true>;
using UsualWay = TileWay<true, false, true>;
using AnyWay = TileWay<false, false, false>;

/// number(i): what ByteRows takes of sums i. kFlips: may bits of the results be inverted in the end?
template <class Way, bool kFlips = true, class F>
HWY_INLINE void store_tile(const ByteRows& rows, const TileBytes& to, F number) {
  using std::integral_constant;
  const VSum a = number(integral_constant<int, 0>());
  const VSum b = number(integral_constant<int, 1>());
#if HWY_ARCH_ARM_A64
  rows.store_halves<Way::kPlain, kFlips>({a.low, a.high, b.low, b.high}, to.first, to.step);
#else
  const VSum c = number(integral_constant<int, 2>());
  const VSum d = number(integral_constant<int, 3>());
#if HWY_TARGET == HWY_AVX3_DL
  rows.template store_halves<Way::kPlain, Way::kWhole>(a, b, c, d, to.first, to.third, to.step);
#else
  rows.template store_halves<Way::kPlain>(a, b, c, d, to.first, to.third, to.step);
#endif
#endif
}

/// What scales sums from channel `first` on. Vector: AffineVector or RequantizeVector.
template <class Vector>
class TileScale {
 public:
#if HWY_ARCH_ARM_A64
  template <class Scaler>
  HWY_INLINE TileScale(const Scaler& scaler, std::int64_t first)
      : low_(DSum(), scaler, first, kVectorLanes), high_(DSum(), scaler, first + kVectorLanes, kVectorLanes) {}

  /// f(scale, vector) of each vector.
  template <class F>
  HWY_INLINE VSum each(VSum sums, F f) const {
    using V = hn::Vec<DSum>;
    return {f(low_, V(sums.low)).raw, f(high_, V(sums.high)).raw};
  }

 private:
  Vector low_;
  Vector high_;
#else
  template <class Scaler>
  HWY_INLINE TileScale(const Scaler& scaler, std::int64_t first) : all_(DSum(), scaler, first, kVectorLanes) {}

  template <class F>
  HWY_INLINE VSum each(VSum sums, F f) const {
    return f(all_, sums);
  }

 private:
  Vector all_;
#endif
};

/// Are all of `count` channels usual? `make(first)`: what has is_usual() for a vector of them.
template <class Make>
HWY_INLINE bool are_usual(std::int64_t count, bool wraps, Make make) {
  bool usual = true;
  for (std::int64_t c = 0; c < count; c += kVectorLanes)
    usual = usual && make(wraps ? c : std::min(c, count - kVectorLanes)).is_usual();
  return usual;
}

/// A block's scales of AffineScaler. `wraps`: vectors may begin at any channel and end behind the last, or there are
/// fewer channels than lanes.
class AffineChannels {
 public:
  AffineChannels(const AffineScaler& scaler, std::int64_t first, std::int64_t count, bool wraps)
      : scaler_(scaler.from_channel(first)), bias_(scaler_.bias) {
    scaler_.bias = nullptr;
    if (wraps) {
      scaler_.real_bias = real_bias_.set(scaler_.real_bias, count);
      if (scaler_.per_channel) scaler_.scale = scale_.set(scaler_.scale, count);
    }
    is_usual_ = are_usual(count, wraps, [&](std::int64_t c) HWY_ATTR {
      return ops::HWY_NAMESPACE::AffineVector<DSum>(DSum(), scaler_, c, kVectorLanes);
    });
  }
  AffineChannels(const AffineChannels&) = delete;
  AffineChannels& operator=(const AffineChannels&) = delete;

  /// What sums begin with, one per channel, or null.
  const std::int32_t* bias() const { return bias_; }
  const AffineScaler& scaler() const { return scaler_; }
  bool is_usual() const { return is_usual_; }

 private:
  AffineScaler scaler_;
  const std::int32_t* bias_;
  bool is_usual_;
  ChannelNumbers real_bias_;
  ChannelNumbers scale_;
};

/// What all last stages with an AffineScaler have. `first`: the channel of a vector's first lane; `columns`: lanes that
/// are stored.
class AffineTile {
 public:
  using Channels = AffineChannels;
  /// Does the last stage need most registers? Then weights are not kept in them, nor a second row's sums.
  static constexpr bool kFillsRegisters = false;

 protected:
  HWY_INLINE AffineTile(const Channels& channels, std::int64_t first, std::int64_t columns)
      : scale_(channels.scaler(), first),
        rows_(byte_rows(channels.scaler().zero_point, channels.scaler().minimum, channels.scaler().maximum,
                        channels.scaler().flip, columns)) {}

  TileScale<ops::HWY_NAMESPACE::AffineVector<DSum>> scale_;
  ByteRows rows_;
};

/// For scalers without an activation.
class PlainTile : public AffineTile {
 public:
  HWY_INLINE PlainTile(const Channels& channels, std::int64_t first, std::int64_t columns)
      : AffineTile(channels, first, columns) {}

  /// Calls f(way) with what is true of all vectors of a block; `whole`: are they stored whole?
  template <class F>
  static HWY_INLINE void with_way(const Channels& channels, bool whole, F f) {
    if (!whole || !channels.is_usual()) return f(AnyWay());
    const AffineScaler& s = channels.scaler();
    if constexpr (HWY_TARGET != HWY_AVX2)
      if (byte_rows(s.zero_point, s.minimum, s.maximum, s.flip, kSumLanes).is_plain()) return f(PlainWay());
    f(UsualWay());
  }
  template <class Way>
  HWY_INLINE void store(Way, const VSum (&sums)[kTileVectors], const TileBytes& to) const {
    store_tile<Way>(
        rows_, to, [&](auto i) __attribute__((always_inline)) HWY_ATTR {
          return scale_.each(
              sums[i], [](const auto& scale, auto sum) __attribute__((always_inline))
                       HWY_ATTR { return scale.template rounded_total<Way::kUsual>(sum); });
        });
  }
};

/// For scalers with an activation for which with_short_steps gives Steps.
template <class Steps>
class ShortStepsTile : public AffineTile {
 public:
  static constexpr bool kFillsRegisters = HWY_ARCH_ARM_A64 && sizeof(Steps) >= 4 * sizeof(VSum);  // tables

  HWY_INLINE ShortStepsTile(const Channels& channels, std::int64_t first, std::int64_t columns)
      : AffineTile(channels, first, columns), steps_(channels.scaler().output_scale) {}

  template <class F>
  static HWY_INLINE void with_way(const Channels& channels, bool whole, F f) {
    if (!whole || !channels.is_usual()) return f(AnyWay());
    f(UsualWay());
  }
  template <class Way>
  HWY_INLINE void store(Way, const VSum (&sums)[kTileVectors], const TileBytes& to) const {
    const ShortStepsTile* here = this;
    // Of few numbers the compiler would make vectors and keep these in registers instead of sums; so it does not know
    // where they lie. Large tables it leaves in memory.
    if constexpr (HWY_ARCH_ARM_A64 || sizeof(Steps) < sizeof(VSum)) asm volatile("" : "+r"(here));
    store_tile<Way>(
        here->rows_, to, [&](auto i) __attribute__((always_inline)) HWY_ATTR {
          return here->scale_.each(
              sums[i], [&](const auto& scale, auto sum) __attribute__((always_inline))
                       HWY_ATTR { return scale.template activated<Way::kUsual>(here->steps_, sum); });
        });
  }

 private:
  Steps steps_;
};

/// For scalers with any activation.
class ActivatedTile : public AffineTile {
 public:
  HWY_INLINE ActivatedTile(const Channels& channels, std::int64_t first, std::int64_t columns)
      : AffineTile(channels, first, columns), scaler_(&channels.scaler()) {}

  template <class F>
  static HWY_INLINE void with_way(const Channels& /*channels*/, bool whole, F f) {
    whole ? f(UsualWay()) : f(AnyWay());
  }
  template <class Way>
  HWY_INLINE void store(Way, const VSum (&sums)[kTileVectors], const TileBytes& to) const {
    HWY_ALIGN std::int32_t numbers[kTileVectors * kSumLanes];
    ops::HWY_NAMESPACE::unroll<kTileVectors>([&](auto i) HWY_ATTR {
      const auto argument = [](const auto& scale, auto sum)
                                HWY_ATTR { return hn::BitCast(DSum(), scale.argument(sum)); };
      store_sums(scale_.each(sums[i], argument), numbers + i * kSumLanes);
    });
    round_activated(*scaler_, numbers, kTileVectors * kSumLanes);
    store_tile<Way>(rows_, to, [&](auto i) HWY_ATTR { return load_sums(numbers + i * kSumLanes); });
  }

 private:
  const AffineScaler* scaler_;
};

/// A block's numbers of TensorFlow Lite's arithmetic.
class RequantizeChannels {
 public:
  RequantizeChannels(const Requantizer& requantizer, std::int64_t first, std::int64_t count, bool wraps)
      : requantizer_(requantizer.from_channel(first)), bias_(requantizer_.bias) {
    requantizer_.bias = nullptr;
    if (wraps) {
      requantizer_.multiplier = multiplier_.set(requantizer_.multiplier, count);
      requantizer_.shift = shift_.set(requantizer_.shift, count);
    }
    is_usual_ = are_usual(count, wraps, [&](std::int64_t c) HWY_ATTR {
      return ops::HWY_NAMESPACE::RequantizeVector<DSum>(DSum(), requantizer_, c, kVectorLanes);
    });
  }
  RequantizeChannels(const RequantizeChannels&) = delete;
  RequantizeChannels& operator=(const RequantizeChannels&) = delete;

  const std::int32_t* bias() const { return bias_; }
  const Requantizer& requantizer() const { return requantizer_; }
  bool is_usual() const { return is_usual_; }

 private:
  Requantizer requantizer_;
  const std::int32_t* bias_;
  bool is_usual_;
  ChannelNumbers multiplier_;
  ChannelNumbers shift_;
};

/// For TensorFlow Lite's arithmetic.
class RequantizeTile {
 public:
  using Channels = RequantizeChannels;
  static constexpr bool kFillsRegisters = false;

  HWY_INLINE RequantizeTile(const Channels& channels, std::int64_t first, std::int64_t columns)
      : requantize_(channels.requantizer(), first),
        rows_(byte_rows(channels.requantizer().zero_point, channels.requantizer().minimum,
                        channels.requantizer().maximum, 0, columns)) {}

  template <class F>
  static HWY_INLINE void with_way(const Channels& channels, bool whole, F f) {
    if (!whole || !channels.is_usual()) return f(AnyWay());
    const Requantizer& r = channels.requantizer();
    // On x86 only results of uint8 are plain.
    if constexpr (HWY_ARCH_ARM_A64)
      if (byte_rows(r.zero_point, r.minimum, r.maximum, 0, kSumLanes).is_plain()) return f(PlainWay());
    f(UsualWay());
  }
  template <class Way>
  HWY_INLINE void store(Way, const VSum (&sums)[kTileVectors], const TileBytes& to) const {
    const RequantizeTile* here = this;
    // See ShortStepsTile: sums need the registers, and what scales them.
    if constexpr (HWY_ARCH_ARM_A64) asm volatile("" : "+r"(here));
    store_tile<Way, false>(
        here->rows_, to, [&](auto i) __attribute__((always_inline)) HWY_ATTR {
          return requantize_.each(
              sums[i], [](const auto& requantize, auto sum) __attribute__((always_inline))
                       HWY_ATTR { return requantize.template rounded_total<Way::kUsual>(sum); });
        });
  }

 private:
  TileScale<ops::HWY_NAMESPACE::RequantizeVector<DSum>> requantize_;
  ByteRows rows_;
};
#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
