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
#include "ops/common/activate_rows.h"
#include "ops/common/affine_form.h"
#include "ops/common/requantize_simd-inl.h"
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

/// Steps from the zero point as numbers of int8 within the scaler's limits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V with_zero_point(D d, const AffineScaler& s, V steps) {
  const V low = hn::Set(d, s.minimum - s.zero_point);
  const V high = hn::Set(d, s.maximum - s.zero_point);
  return hn::Add(hn::Min(hn::Max(steps, low), high), hn::Set(d, s.zero_point));
}

/// round_activated of vectors, as numbers of int8.
template <class D, int kCount>
HWY_INLINE void quantize_vectors(D d, const AffineScaler& s, hn::Vec<D> (&numbers)[kCount]) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  HWY_ALIGN std::int32_t buffer[kCount * kLanes];
  unroll<kCount>([&](auto i) HWY_ATTR { hn::Store(numbers[i], d, buffer + i * kLanes); });
  round_activated(s, buffer, kCount * kLanes);
  unroll<kCount>([&](auto i) HWY_ATTR { numbers[i] = with_zero_point(d, s, hn::Load(d, buffer + i * kLanes)); });
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
        // -0 is what changes no number, 0 neither.
        real_bias_(s.real_bias != nullptr ? load_channels(DF(), s.real_bias + first, lanes) : hn::Set(DF(), -0.0F)),
        scale_(scales(s, first, lanes)),
        limited_scale_(limited(scale_)),
        low_(hn::Set(DF(), static_cast<float>(s.minimum - s.zero_point))),
        high_(hn::Set(DF(), static_cast<float>(s.maximum - s.zero_point))),
        zero_point_(hn::Set(d, s.zero_point)),
        is_usual_(s.has_activation() ? has_usual_arguments(s.output_scale)
                                     : hn::AllTrue(DF(), hn::Lt(hn::Abs(limited_scale_), hn::Set(DF(), 1.0F)))),
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

  /// A scale with which 8-bit results are the same, but no product is without a number: those count as 0.
  static HWY_INLINE VF limited(VF scale) {
    const auto largest = hn::Set(DF(), std::numeric_limits<float>::max());
    const auto finite = hn::Min(hn::Max(scale, hn::Neg(largest)), largest);
    return hn::IfThenElseZero(hn::Eq(scale, scale), finite);
  }

  /// The f32 result before an activation.
  HWY_INLINE VF real(V sum) const { return hn::Add(hn::Mul(hn::ConvertTo(DF(), sum), scale_), real_bias_); }

  /// The same of an activation whose result is quantised: -0 may be 0.
  HWY_INLINE VF argument(V sum) const { return hn::Add(hn::Mul(hn::ConvertTo(DF(), sum), scale_), real_bias_); }

  /// The same for F of with_short_steps, which may be rounded once.
  template <class F>
  static HWY_INLINE VF argument_for(V sum, VF scale, VF real_bias) {
    if constexpr (!F::kIsExact) return hn::MulAdd(hn::ConvertTo(DF(), sum), scale, real_bias);
    return hn::Add(hn::Mul(hn::ConvertTo(DF(), sum), scale), real_bias);
  }

  /// Steps of 8-bit results of what with_short_steps gives, rounded; what is beyond 16 bits only lies on its side.
  /// kUsual: what is_usual() says, or false.
  template <bool kUsual = false, class F>
  HWY_INLINE V activated(const F& steps, V sum) const {
    const VF x = argument_for<F>(sum, scale_, real_bias_);
    if constexpr (kUsual) return nearest_in_range(steps.of_finite(DF(), x));
    const auto y = steps(DF(), x);
    return nearest_in_range(HWY_ARCH_ARM_A64 ? y : hn::Min(y, high_));  // see rounded_total
  }

  /// 8-bit results as numbers in the range of int8, in place of sums. `s`: the scaler.
  template <int kCount>
  HWY_INLINE void to_bytes(const AffineScaler& s, V (&sums)[kCount]) const {
    if (s.has_activation()) {
      unroll<kCount>([&](auto i) HWY_ATTR { sums[i] = hn::BitCast(D(), argument(sums[i])); });
      quantize_vectors(D(), s, sums);
    } else {
      unroll<kCount>([&](auto i) HWY_ATTR { sums[i] = (*this)(sums[i]); });
    }
  }

  /// The same without zero point and limits; what is beyond 16 bits only lies on its side.
  template <bool kUsual = false>
  HWY_INLINE V rounded(V sum) const {
    return rounded_total<kUsual>(hn::Add(sum, bias_));
  }

  /// Are all scales below 1, or, with an activation, all its arguments finite and less than 2^30 steps of the result?
  /// Then no result exceeds int32, and rounded() and activated() have a shorter way.
  bool is_usual() const { return is_usual_; }

  /// The sum with its bias: what rounded_total takes; activated() takes sums without, and the bias is 0.
  HWY_INLINE void add_bias(V sum, std::int32_t* to) const { hn::Store(hn::Add(sum, bias_), D(), to); }

  /// The same of a sum that has its bias. kUsual: what is_usual() says, or false.
  template <bool kUsual = false>
  HWY_INLINE V rounded_total(V total) const {
    const auto scaled = hn::Mul(hn::ConvertTo(DF(), total), limited_scale_);
    // What exceeds int32 becomes its largest number on Arm, its least on x86.
    return nearest_in_range(kUsual || HWY_ARCH_ARM_A64 ? scaled : hn::Min(scaled, high_));
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

  HWY_INLINE bool has_usual_arguments(float step) const {
    const auto most_scale = hn::Set(DF(), step * 0x1p-2F);  // sums are at most 2^31
    const auto most_bias = hn::Set(DF(), step * 0x1p29F);
    return hn::AllTrue(DF(), hn::And(hn::Lt(hn::Abs(scale_), most_scale), hn::Lt(hn::Abs(real_bias_), most_bias)));
  }

  V bias_;
  VF real_bias_;
  VF scale_;
  VF limited_scale_;
  VF low_;
  VF high_;
  V zero_point_;
  bool is_usual_;
  std::uint8_t flip_;
};

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
