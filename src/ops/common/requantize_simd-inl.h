// The int8 form's scaling of accumulators (Requantizer in linear_form.h) on vectors of channels, to the bit. Included
// by *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_REQUANTIZE_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_REQUANTIZE_SIMD_INL_H_
#undef BANTAM_OPS_REQUANTIZE_SIMD_INL_H_
#else
#define BANTAM_OPS_REQUANTIZE_SIMD_INL_H_
#endif

#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "ops/common/fixed_point_neon.h"
#include "ops/common/linear_form.h"
#include "ops/common/math_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// The first `lanes` elements at `from`, zeros behind. Reads nothing beyond.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_channels(D d, const T* from, std::int64_t lanes) {
  if (lanes >= static_cast<std::int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(lanes)), d, from);
#endif
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)] = {};
  for (std::int64_t i = 0; i < lanes; ++i) buffer[i] = from[i];
  return hn::Load(d, buffer);
}

/// Stores the first `lanes` lanes, nothing behind.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void store_lanes(D d, hn::Vec<D> v, std::int64_t lanes, T* to) {
  if (lanes >= static_cast<std::int64_t>(hn::Lanes(d))) {
    hn::StoreU(v, d, to);
    return;
  }
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(lanes)), d, to);
  return;
#endif
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, buffer);
  for (std::int64_t i = 0; i < lanes; ++i) to[i] = buffer[i];
}

/// Numbers in the range of int8 as bytes.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::int8_t, D>> demote_to_bytes(D /*d*/, hn::Vec<D> v) {
  const hn::Rebind<std::int8_t, D> d8;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if constexpr (hn::MaxLanes(D()) == 16) return hn::Vec<hn::Rebind<std::int8_t, D>>{_mm512_cvtepi32_epi8(v.raw)};
#endif
  return hn::DemoteTo(d8, v);
}

/// Requantizer for the channels [first, first + lanes), one per lane of the int32 tag D.
template <class D>
class RequantizeVector {
 public:
  using V = hn::Vec<D>;

  HWY_INLINE RequantizeVector(D d, const Requantizer& r, std::int64_t first, std::int64_t lanes)
      : bias_(r.bias != nullptr ? load_channels(d, r.bias + first, lanes) : hn::Zero(d)),
        multiplier_(load_channels(d, r.multiplier + first, lanes)),
        low_(hn::Set(d, r.minimum - r.zero_point)),
        high_(hn::Set(d, r.maximum - r.zero_point)),
        zero_point_(hn::Set(d, r.zero_point)) {
    const V shift = hn::Min(hn::Max(load_channels(d, r.shift + first, lanes), hn::Set(d, -31)), hn::Set(d, 30));
    left_ = hn::Max(shift, hn::Zero(d));
    right_ = hn::Max(hn::Neg(shift), hn::Zero(d));
    mask_ = hn::Sub(hn::Shl(hn::Set(d, 1), right_), hn::Set(d, 1));
    const V one = hn::Set(d, 1);
    const auto is_zero = hn::Eq(multiplier_, hn::Zero(d));
    const auto is_small = hn::And(hn::Gt(multiplier_, hn::Zero(d)), hn::Gt(right_, hn::Zero(d)));
    is_usual_ = hn::AllTrue(d, hn::Or(is_zero, is_small));
    usual_shift_ = HWY_ARCH_ARM_A64 ? hn::Neg(right_) : hn::IfThenZeroElse(is_zero, hn::Sub(right_, one));
  }

  /// Are all factors below a half, and none negative? Then rounded() has a shorter way.
  bool is_usual() const { return is_usual_; }

  /// The results, in the range of int8.
  HWY_INLINE V operator()(V sum) const { return is_usual_ ? result<true>(sum) : result<false>(sum); }

  /// The same. kUsual, here and below: what is_usual() says, or false; many sums at once ask for it once.
  template <bool kUsual>
  HWY_INLINE V result(V sum) const {
    return hn::Add(hn::Min(hn::Max(rounded<kUsual>(sum), low_), high_), zero_point_);
  }

  /// The results without zero point and limits.
  template <bool kUsual>
  HWY_INLINE V rounded(V sum) const {
    return rounded_total<kUsual>(hn::Add(sum, bias_));
  }

  /// The sum with its bias.
  HWY_INLINE void add_bias(V sum, std::int32_t* to) const { hn::Store(hn::Add(sum, bias_), D(), to); }

  /// The same of a sum that has its bias.
  template <bool kUsual>
  HWY_INLINE V rounded_total(V total) const {
#if HWY_ARCH_ARM_A64
    if constexpr (kUsual && hn::MaxLanes(D()) == 4)
      return V(neon::divide_by_real_power(neon::high_mul(total.raw, multiplier_.raw), usual_shift_.raw));
#endif
    if constexpr (kUsual && !HWY_ARCH_ARM_A64) {
      // h = (total * multiplier + 2^30) >> 31 has the sign of `total` or is 0, and |h| < 2^31 - 1. With r = right_ >= 1
      // and s = total < 0 ? -1 : 0, rounding h / 2^r with ties away from zero gives floor((h + s + 2^(r - 1)) / 2^r),
      // of h = 0 either way 0: so h + s is divided by 2^(r - 1), 1 added and the half taken.
      const V signs = hn::ShiftRight<31>(total);
      const V quotient = hn::Shr(hn::Add(multiply_half_up(total), signs), usual_shift_);
      return hn::ShiftRight<1>(hn::Add(quotient, hn::Set(D(), 1)));
    }
    return divide_by_power(multiply_high(hn::Shl(total, left_)));
  }

 private:
  /// saturating_rounding_doubling_high_mul: for either sign it equals (x * multiplier + 2^30) >> 31.
  HWY_INLINE V multiply_high(V x) const {
    const D d;
#if HWY_ARCH_ARM_A64
    if constexpr (hn::MaxLanes(D()) == 4) return V(neon::high_mul(x.raw, multiplier_.raw));
#endif
    const V lowest = hn::Set(d, std::numeric_limits<std::int32_t>::min());
    const auto overflows = hn::And(hn::Eq(x, lowest), hn::Eq(multiplier_, lowest));
    return hn::IfThenElse(overflows, hn::Set(d, std::numeric_limits<std::int32_t>::max()), multiply_half_up(x));
  }

  /// (x * multiplier + 2^30) >> 31, wrapping.
  HWY_INLINE V multiply_half_up(V x) const {
    const D d;
    const hn::RepartitionToWide<D> d64;
    const hn::RebindToUnsigned<decltype(d64)> u64;
    const auto odd_lanes = [&](V v) HWY_ATTR { return hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(u64, v))); };
    const auto nudge = hn::Set(d64, std::int64_t{1} << 30);
    const auto even = hn::Add(hn::MulEven(x, multiplier_), nudge);
    const auto odd = hn::Add(hn::MulEven(odd_lanes(x), odd_lanes(multiplier_)), nudge);
    // Bits 31 to 62 of each sum: in the low half for even lanes, in the high half for odd ones.
    return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<1>(hn::BitCast(u64, odd))),
                       hn::BitCast(d, hn::ShiftRight<31>(hn::BitCast(u64, even))));
  }

  /// rounding_divide_by_pot by 2^right_.
  HWY_INLINE V divide_by_power(V x) const {
    const D d;
#if HWY_ARCH_ARM_A64
    if constexpr (hn::MaxLanes(D()) == 4) return V(neon::divide_by_power(x.raw, hn::Neg(right_).raw));
#endif
    const V remainder = hn::And(x, mask_);
    const V one = hn::Set(d, 1);
    const V threshold = hn::Add(hn::ShiftRight<1>(mask_), hn::IfThenElseZero(hn::Lt(x, hn::Zero(d)), one));
    return hn::Add(hn::Shr(x, right_), hn::IfThenElseZero(hn::Gt(remainder, threshold), one));
  }

  V bias_;
  V multiplier_;
  V low_;
  V high_;
  V zero_point_;
  V left_;
  V right_;
  V mask_;
  V usual_shift_;  ///< right_ - 1 or, on Arm, -right_; 0 where that is nothing
  bool is_usual_;
};

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
