// Powers of floats, computed in doubles: the exponent multiplies the logarithm's error. Compiled once per instruction
// set.
#if defined(BANTAM_OPS_ELEMENTWISE_BINARY_POWER_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_ELEMENTWISE_BINARY_POWER_SIMD_INL_H_
#undef BANTAM_OPS_ELEMENTWISE_BINARY_POWER_SIMD_INL_H_
#else
#define BANTAM_OPS_ELEMENTWISE_BINARY_POWER_SIMD_INL_H_
#endif

#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "ops/common/math_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Binary logarithm of a positive, normal, finite double; absolute error below 1e-10.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log2_f64(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const auto root = hn::Set(du, std::uint64_t{0x3fe6a09e667f3bcd});  // sqrt(1/2)
  // m = x / 2^n in [sqrt(1/2), sqrt(2)): subtracting the bits of sqrt(1/2) leaves n in the exponent field.
  const auto offset = hn::Sub(hn::BitCast(du, x), root);
  const auto fraction = hn::And(offset, hn::Set(du, (std::uint64_t{1} << 52) - 1));
  const V m = hn::BitCast(d, hn::Add(fraction, root));
  const auto biased = hn::ShiftRight<52>(hn::Add(offset, hn::Set(du, std::uint64_t{1024} << 52)));
  const V n =
      hn::Sub(hn::BitCast(d, hn::Or(biased, hn::Set(du, std::uint64_t{0x433} << 52))), hn::Set(d, 0x1p52 + 1024.0));
  // log m = 2 artanh s.
  const V one = hn::Set(d, 1.0);
  const V s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const V s2 = hn::Mul(s, s);
  V sum = hn::Set(d, 1.0 / 13);
  for (const double c : {1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0}) sum = hn::MulAdd(sum, s2, hn::Set(d, c));
  return hn::MulAdd(hn::Mul(s, hn::Set(d, 2.8853900817779268)), sum, n);
}

/// 2^x for |x| <= 1000; relative error below 1e-9.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_f64(D d, V x) {
  // Leaves the nearest integer, 1023 larger, in the lowest bits of the sum.
  const V rounder = hn::Set(d, 0x1.8p52 + 1023.0);
  const V sum = hn::Add(x, rounder);
  const V r = hn::Mul(hn::Sub(x, hn::Sub(sum, rounder)), hn::Set(d, 0.69314718055994531));
  V y = hn::Set(d, 1.0 / 40320);
  for (const double c : {1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0})
    y = hn::MulAdd(y, r, hn::Set(d, c));
  const hn::RebindToUnsigned<D> du;
  return hn::Mul(y, hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(du, sum))));
}

/// a^b for doubles that were floats, with all that C's pow says about zeros, infinities, NaN and negative numbers.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V power_f64(D d, V a, V b) {
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1.0);
  const V infinity = hn::Set(d, std::numeric_limits<double>::infinity());
  const V magnitude = hn::Abs(a);
  V logarithm = hn::IfThenElse(hn::Eq(magnitude, zero), hn::Neg(infinity), log2_f64(d, magnitude));
  logarithm = hn::IfThenElse(hn::Lt(magnitude, infinity), logarithm, magnitude);  // NaN, too
  // Floats end at 2^128 and 2^-149.
  const V exponent = at_least(d, at_most(d, hn::Mul(b, logarithm), hn::Set(d, 300.0)), hn::Set(d, -300.0));
  V y = hn::IfThenElse(hn::Eq(exponent, exponent), exp2_f64(d, exponent), exponent);
  y = hn::IfThenElse(hn::Or(hn::Eq(b, zero), hn::Eq(magnitude, one)), one, y);
  const V half = hn::Mul(b, hn::Set(d, 0.5));
  const auto is_whole = hn::Eq(hn::Round(b), b);
  const auto is_odd = hn::AndNot(hn::Eq(hn::Round(half), half), is_whole);
  y = hn::Or(y, hn::IfThenElseZero(is_odd, hn::And(a, hn::SignBit(d))));
  const auto is_real = hn::Or(is_whole, hn::Not(hn::And(hn::Lt(a, zero), hn::Lt(magnitude, infinity))));
  y = hn::IfThenElse(is_real, y, hn::Set(d, std::numeric_limits<double>::quiet_NaN()));
  return hn::IfThenElse(hn::Eq(a, one), one, hn::IfThenElse(hn::Eq(b, zero), one, y));
}

/// a^b, rounded once but for 1e-9.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V power_f32(D d, V a, V b) {
  if constexpr (hn::MaxLanes(d) * sizeof(double) > HWY_MAX_BYTES) {
    const hn::Half<D> half;
    return hn::Combine(d, power_f32(half, hn::UpperHalf(half, a), hn::UpperHalf(half, b)),
                       power_f32(half, hn::LowerHalf(half, a), hn::LowerHalf(half, b)));
  } else {
    const hn::Rebind<double, D> wide;
    return hn::DemoteTo(d, power_f64(wide, hn::PromoteTo(wide, a), hn::PromoteTo(wide, b)));
  }
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
