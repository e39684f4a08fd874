// Fixed-point arithmetic of ops/fixed_point.h on Highway vectors of int32, to the bit, and loads and stores of 8-bit
// rows as int32 vectors. Compiled once per instruction set.
#if defined(BANTAM_OPS_COMMON_FIXED_POINT_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_COMMON_FIXED_POINT_SIMD_INL_H_
#undef BANTAM_OPS_COMMON_FIXED_POINT_SIMD_INL_H_
#else
#define BANTAM_OPS_COMMON_FIXED_POINT_SIMD_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/fixed_point_neon.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/fixed_point.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// saturating_rounding_doubling_high_mul for multipliers >= 0, where nothing saturates: bits 31..62 of a * b + 2^30.
/// Adding 2^30 and taking the floor rounds like the scalar form's nudge and truncation, for both signs.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V rounding_doubling_high_mul(D d, V a, V b) {
#if HWY_ARCH_ARM_A64
  if constexpr (hn::MaxLanes(D()) == 4) return V(neon::high_mul(a.raw, b.raw));
#endif
  const hn::RepartitionToWide<D> d64;
  const hn::RebindToUnsigned<decltype(d64)> du64;
  const auto nudge = hn::Set(d64, std::int64_t{1} << 30);
  const auto odd_lanes = [&](V v) HWY_ATTR { return hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(du64, v))); };
  const auto even = hn::BitCast(du64, hn::Add(hn::MulEven(a, b), nudge));
  const auto odd = hn::BitCast(du64, hn::Add(hn::MulEven(odd_lanes(a), odd_lanes(b)), nudge));
  return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<1>(odd)), hn::BitCast(d, hn::ShiftRight<31>(even)));
}

/// rounding_divide_by_pot, 0 <= exponent <= 31, of rounding_doubling_high_mul's results, none of which is INT32_MIN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V rounding_divide_by_pot(D d, V x, int exponent) {
#if HWY_ARCH_ARM_A64
  if constexpr (hn::MaxLanes(D()) == 4) return V(neon::divide_by_power(x.raw, vdupq_n_s32(-exponent)));
#endif
  const V mask = hn::Set(d, static_cast<std::int32_t>((std::int64_t{1} << exponent) - 1));
  const V remainder = hn::And(x, mask);
  // A set comparison lane is -1.
  const V threshold = hn::Sub(hn::ShiftRight<1>(mask), hn::VecFromMask(d, hn::Lt(x, hn::Zero(d))));
  return hn::Sub(hn::ShiftRightSame(x, exponent), hn::VecFromMask(d, hn::Gt(remainder, threshold)));
}

/// multiply_by_quantized_multiplier for multiplier >= 0 and -31 <= shift <= 30.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V multiply_by_quantized_multiplier(D d, V x, V multiplier, int shift) {
  if (shift > 0) return rounding_doubling_high_mul(d, hn::ShiftLeftSame(x, shift), multiplier);
  return rounding_divide_by_pot(d, rounding_doubling_high_mul(d, x, multiplier), -shift);
}

/// Lanes(d) elements of an 8-bit row as int32.
template <class D, typename T>
HWY_INLINE hn::Vec<D> load_wide(D d, const T* HWY_RESTRICT from) {
  const hn::Rebind<T, D> narrow;
  return hn::PromoteTo(d, hn::LoadU(narrow, from));
}

/// Stores Lanes(d) values that lie within T.
template <typename T, class D>
HWY_INLINE void store_narrow(D, hn::Vec<D> v, T* to) {
  const hn::Rebind<T, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, v), narrow, to);
}

/// y[i] = f(d, x[i]) for 0 <= i < n, 8-bit elements seen as vectors of int32; f gives values within TY. y may be x.
template <typename TY, typename TX, class F>
HWY_INLINE void map_row_wide(std::size_t n, TY* y, F f, const TX* x) {
  const hn::ScalableTag<std::int32_t> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) store_narrow<TY>(d, f(d, load_wide(d, x + i)), y + i);
  if (i == n) return;
  constexpr std::size_t kMost = HWY_MAX_BYTES / sizeof(std::int32_t);
  TX tail[kMost] = {};
  TY result[kMost] = {};
  load_end(x + i, n - i, tail);
  store_narrow<TY>(d, f(d, load_wide(d, tail)), result);
  store_end(result, n - i, y + i);
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
