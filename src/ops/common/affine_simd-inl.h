// The scaling of accumulators by AffineScaler (affine_form.h) on vectors of channels, to the bit but for activations
// that compute exponentials. Those of f32 results the caller applies; those of 8-bit results belong to `to_bytes`.
// Included by *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_AFFINE_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_AFFINE_SIMD_INL_H_
#undef BANTAM_OPS_AFFINE_SIMD_INL_H_
#else
#define BANTAM_OPS_AFFINE_SIMD_INL_H_
#endif

#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "ops/common/affine_form.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/elementwise/unary/activation_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Zero points of the channels [first, first + lanes), 0 in further lanes of the int32 tag D.
template <class D>
HWY_INLINE hn::Vec<D> load_zero_points(D d, const ZeroPoints& zeros, std::int64_t first, std::int64_t lanes) {
  HWY_ALIGN std::int32_t buffer[HWY_MAX_BYTES / sizeof(std::int32_t)] = {};
  for (std::int64_t i = 0; i < lanes; ++i) buffer[i] = zeros[first + i];
  return hn::Load(d, buffer);
}

using ActivatedTag = hn::CappedTag<std::int32_t, 16>;
constexpr std::size_t kActivatedLanes = hn::MaxLanes(ActivatedTag());

/// kCount vectors of quantize_activated.
template <int kCount>
HWY_INLINE void quantize_some_activated(const AffineScaler& s, std::int32_t* numbers) {
  constexpr ActivatedTag d;
  using DF = hn::Rebind<float, ActivatedTag>;
  const DF df;
  const auto scale = hn::Set(df, s.output_scale);
  const auto low = hn::Set(df, static_cast<float>(s.minimum - s.zero_point));
  const auto high = hn::Set(df, static_cast<float>(s.maximum - s.zero_point));
  const auto zero_point = hn::Set(d, s.zero_point);
  Lockstep<kCount, hn::Vec<DF>> real;
  real.set([&](auto i) HWY_ATTR { return hn::BitCast(df, hn::Load(d, numbers + i * kActivatedLanes)); });
  const auto steps = activated_steps(df, real, s.activation, scale);
  unroll<kCount>([&](auto i) HWY_ATTR {
    const auto number = hn::IfThenElseZero(hn::Eq(steps.v[i], steps.v[i]), steps.v[i]);
    const auto limited = hn::Min(hn::Max(number, low), high);
    hn::Store(hn::Add(nearest_in_range(limited), zero_point), d, numbers + i * kActivatedLanes);
  });
}

/// The last step of 8-bit results with an activation, in place: `numbers` are the bits of f32 results before the
/// activation, and become numbers in the range of int8. `count` is a multiple of the vectors' lanes; aligned.
HWY_NOINLINE inline void quantize_activated(const AffineScaler& scaler, std::int32_t* numbers, std::int64_t count) {
  constexpr int kAtOnce = 4;  // where each step of a function waits for the one before
  constexpr auto kLanes = static_cast<std::int64_t>(kActivatedLanes);
  const AffineScaler s = scaler;  // which no store changes
  std::int64_t i = 0;
  if (has_exponential(s.activation.function))
    for (; i + kAtOnce * kLanes <= count; i += kAtOnce * kLanes) quantize_some_activated<kAtOnce>(s, numbers + i);
  for (; i < count; i += kLanes) quantize_some_activated<1>(s, numbers + i);
}

/// quantize_activated of vectors.
template <class D, int kCount>
HWY_INLINE void quantize_vectors(D d, const AffineScaler& s, hn::Vec<D> (&numbers)[kCount]) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  constexpr std::size_t kWhole = (kCount * kLanes + kActivatedLanes - 1) / kActivatedLanes * kActivatedLanes;
  HWY_ALIGN std::int32_t buffer[kWhole];
  hn::Store(hn::Zero(ActivatedTag()), ActivatedTag(), buffer + kWhole - kActivatedLanes);
  unroll<kCount>([&](auto i) HWY_ATTR { hn::Store(numbers[i], d, buffer + i * kLanes); });
  quantize_activated(s, buffer, kWhole);
  unroll<kCount>([&](auto i) HWY_ATTR { numbers[i] = hn::Load(d, buffer + i * kLanes); });
}

/// AffineScaler for the channels [first, first + lanes), one per lane of the int32 tag D.
template <class D>
class AffineVector {
 public:
  using V = hn::Vec<D>;
  using DF = hn::Rebind<float, D>;
  using VF = hn::Vec<DF>;

  HWY_INLINE AffineVector(D d, const AffineScaler& s, std::int64_t first, std::int64_t lanes)
      : bias_(s.bias != nullptr ? load_channels(d, s.bias + first, lanes) : hn::Zero(d)),
        real_bias_(s.real_bias != nullptr ? load_channels(DF(), s.real_bias + first, lanes) : hn::Zero(DF())),
        has_real_bias_(s.real_bias != nullptr),
        scale_(scales(s, first, lanes)),
        limited_scale_(limited(scale_)),
        low_(hn::Set(DF(), static_cast<float>(s.minimum - s.zero_point))),
        high_(hn::Set(DF(), static_cast<float>(s.maximum - s.zero_point))),
        zero_point_(hn::Set(d, s.zero_point)),
        flip_(s.flip) {}

  HWY_INLINE void store(V sum, std::int64_t lanes, std::int32_t* y) const {
    store_lanes(D(), hn::Add(sum, bias_), lanes, y);
  }

  /// `sum` is what `to_bytes` gave.
  HWY_INLINE void store(V sum, std::int64_t lanes, std::uint8_t* y) const {
    const hn::Rebind<std::uint8_t, D> u8;
    const auto bytes = hn::BitCast(u8, demote_to_bytes(D(), sum));
    store_lanes(u8, hn::Xor(bytes, hn::Set(u8, flip_)), lanes, y);
  }

  HWY_INLINE void store(V sum, std::int64_t lanes, float* y) const { store_lanes(DF(), real(sum), lanes, y); }

  /// The f32 result before an activation.
  HWY_INLINE VF real(V sum) const {
    const auto scaled = hn::Mul(hn::ConvertTo(DF(), sum), scale_);
    return has_real_bias_ ? hn::Add(scaled, real_bias_) : scaled;
  }

  /// 8-bit results as numbers in the range of int8, in place of sums. `s`: the scaler.
  template <int kCount>
  HWY_INLINE void to_bytes(const AffineScaler& s, V (&sums)[kCount]) const {
    if (s.has_activation()) {
      unroll<kCount>([&](auto i) HWY_ATTR { sums[i] = hn::BitCast(D(), real(sums[i])); });
      quantize_vectors(D(), s, sums);
    } else {
      unroll<kCount>([&](auto i) HWY_ATTR { sums[i] = (*this)(sums[i]); });
    }
  }

  /// The same without zero point and limits; what is beyond 16 bits only lies on its side.
  HWY_INLINE V rounded(V sum) const { return rounded_total(hn::Add(sum, bias_)); }

  /// The same of a sum that has its bias.
  HWY_INLINE V rounded_total(V total) const {
    const auto scaled = hn::Mul(hn::ConvertTo(DF(), total), limited_scale_);
    return nearest_in_range(hn::Min(scaled, high_));
  }

  /// An 8-bit result without an activation as a number in the range of int8.
  HWY_INLINE V operator()(V sum) const {
    const auto scaled = hn::Mul(hn::ConvertTo(DF(), hn::Add(sum, bias_)), limited_scale_);
    return hn::Add(nearest_in_range(hn::Min(hn::Max(scaled, low_), high_)), zero_point_);
  }

 private:
  static HWY_INLINE VF scales(const AffineScaler& s, std::int64_t first, std::int64_t lanes) {
    if (s.scale == nullptr) return hn::Zero(DF());
    return s.per_channel ? load_channels(DF(), s.scale + first, lanes) : hn::Set(DF(), s.scale[0]);
  }

  /// A scale with which 8-bit results are the same, but no product is without a number: those count as 0.
  static HWY_INLINE VF limited(VF scale) {
    const auto largest = hn::Set(DF(), std::numeric_limits<float>::max());
    const auto finite = hn::Min(hn::Max(scale, hn::Neg(largest)), largest);
    return hn::IfThenElseZero(hn::Eq(scale, scale), finite);
  }

  V bias_;
  VF real_bias_;
  bool has_real_bias_;
  VF scale_;
  VF limited_scale_;
  VF low_;
  VF high_;
  V zero_point_;
  std::uint8_t flip_;
};

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
