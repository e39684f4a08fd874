// Trigonometric and hyperbolic functions and their inverses on vectors of float, to a few units in the last place.
// Included by *_simd.cpp files, compiled once per instruction set. NaN gives NaN; outside of its domain a function
// does.
#if defined(BANTAM_OPS_TRIGONOMETRIC_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_TRIGONOMETRIC_SIMD_INL_H_
#undef BANTAM_OPS_TRIGONOMETRIC_SIMD_INL_H_
#else
#define BANTAM_OPS_TRIGONOMETRIC_SIMD_INL_H_
#endif

#include "hwy/highway.h"
#include "ops/common/math_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Angles up to this are reduced to a few units in the last place: larger ones need more of pi.
constexpr float kLargestAngle = 39000.0F;

/// x + c[0] x^3 + c[1] x^5 + ...
template <class D, std::size_t N, class V = hn::Vec<D>>
HWY_INLINE V odd_polynomial(D d, V x, const float (&c)[N]) {
  const V square = hn::Mul(x, x);
  return hn::MulAdd(hn::Mul(square, x), polynomial(d, square, c), x);
}

/// x - quarters pi / 2. Every part of pi / 2 but the last has so few bits that its product is exact.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V less_quarters(D d, V x, V quarters) {
  for (const float part : {0x1.92p+0F, 0x1.fbp-12F, 0x1.51p-22F, 0x1.0b4612p-34F})
    x = hn::NegMulAdd(quarters, hn::Set(d, part), x);
  return x;
}

/// sin of r, which is at most pi / 2 away from 0, negated where the lowest bit of `turns` is set.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V signed_sine(D d, V r, V turns) {
  static constexpr float kC[] = {-0x1.555556p-3F, 0x1.11110cp-7F, -0x1.a017dap-13F, 0x1.717080p-19F, -0x1.9a688ap-26F};
  const hn::RebindToSigned<D> di;
  const auto sign = hn::ShiftLeft<31>(hn::BitCast(di, turns));
  return hn::Xor(odd_polynomial(d, r, kC), hn::BitCast(d, sign));
}

constexpr float kWholeRounder = 0x1.8p23F;  ///< Added to a number below 2^21, this leaves the nearest integer.

/// For |x| <= kLargestAngle.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sin_f32(D d, V x) {
  const V rounder = hn::Set(d, kWholeRounder);
  const V turns = hn::MulAdd(x, hn::Set(d, 0.318309886F), rounder);
  const V whole = hn::Sub(turns, rounder);
  return signed_sine(d, less_quarters(d, x, hn::Add(whole, whole)), turns);
}

/// For |x| <= kLargestAngle.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V cos_f32(D d, V x) {
  // The zero next to |x| is at (whole - 1/2) pi; there the function falls where `whole` is odd.
  const V rounder = hn::Set(d, kWholeRounder);
  const V turns = hn::Add(hn::MulAdd(hn::Abs(x), hn::Set(d, 0.318309886F), hn::Set(d, 0.5F)), rounder);
  const V whole = hn::Sub(turns, rounder);
  const V quarters = hn::Sub(hn::Add(whole, whole), hn::Set(d, 1.0F));
  return signed_sine(d, less_quarters(d, hn::Abs(x), quarters), turns);
}

/// For |x| <= kLargestAngle.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tan_f32(D d, V x) {
  static constexpr float kC[] = {0x1.555560p-2F, 0x1.110d8ep-3F,  0x1.badbe0p-5F, 0x1.5cafe0p-6F,
                                 0x1.6311c0p-7F, 0x1.775b6cp-14F, 0x1.1ecdfcp-8F};
  const hn::RebindToSigned<D> di;
  const V rounder = hn::Set(d, kWholeRounder);
  const V quarters = hn::MulAdd(x, hn::Set(d, 0.636619772F), rounder);
  const V y = odd_polynomial(d, less_quarters(d, x, hn::Sub(quarters, rounder)), kC);
  const auto odd = hn::MaskFromVec(hn::BitCast(d, hn::BroadcastSignBit(hn::ShiftLeft<31>(hn::BitCast(di, quarters)))));
  return hn::Div(hn::IfThenElse(odd, hn::Set(d, -1.0F), y), hn::IfThenElse(odd, y, hn::Set(d, 1.0F)));
}

/// asin x where x is at most 1/2, acos x otherwise, of 0 <= x.
template <class D, class V = hn::Vec<D>, class M>
HWY_INLINE V smaller_arc(D d, V x, M small) {
  static constexpr float kC[] = {0x1.55554cp-3F, 0x1.33387cp-4F, 0x1.6caed2p-5F,
                                 0x1.0491a0p-5F, 0x1.d91fb8p-7F, 0x1.3355bcp-5F};
  // acos x = 2 asin sqrt((1 - x) / 2)
  const V half = hn::Set(d, 0.5F);
  const V s = hn::IfThenElse(small, x, hn::Sqrt(hn::NegMulAdd(x, half, half)));
  const V y = odd_polynomial(d, s, kC);
  return hn::IfThenElse(small, y, hn::Add(y, y));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V asin_f32(D d, V x) {
  const V magnitude = hn::Abs(x);
  const auto small = hn::Le(magnitude, hn::Set(d, 0.5F));
  const V y = smaller_arc(d, magnitude, small);
  return hn::CopySign(hn::IfThenElse(small, y, hn::Sub(hn::Set(d, 1.57079633F), y)), x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V acos_f32(D d, V x) {
  const V magnitude = hn::Abs(x);
  const auto small = hn::Le(magnitude, hn::Set(d, 0.5F));
  const V y = smaller_arc(d, magnitude, small);
  const V large = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 3.14159265F), y), y);
  return hn::IfThenElse(small, hn::Sub(hn::Set(d, 1.57079633F), hn::CopySign(y, x)), large);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V atan_f32(D d, V x) {
  static constexpr float kC[] = {-0x1.55553ep-2F, 0x1.9991fep-3F,  -0x1.2421b4p-3F, 0x1.c099fap-4F,  -0x1.583486p-4F,
                                 0x1.dac9bap-5F,  -0x1.fed108p-6F, 0x1.65a5f8p-7F,  -0x1.d62f34p-10F};
  const V one = hn::Set(d, 1.0F);
  const V magnitude = hn::Abs(x);
  const auto large = hn::Gt(magnitude, one);
  const V y = odd_polynomial(d, hn::IfThenElse(large, hn::Div(one, magnitude), magnitude), kC);
  return hn::CopySign(hn::IfThenElse(large, hn::Sub(hn::Set(d, 1.57079633F), y), y), x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sinh_f32(D d, V x) {
  // m = e^(|x| / 2) - 1, s = (e^|x| - 1) / 2; sinh |x| = s (1 + 1 / e^|x|).
  const V half = hn::Set(d, 0.5F);
  const V m = expm1_f32(d, at_most(d, hn::Mul(hn::Abs(x), half), hn::Set(d, 88.0F)));
  const V s = hn::Mul(hn::Mul(half, m), hn::Add(m, hn::Set(d, 2.0F)));
  const V one = hn::Set(d, 1.0F);
  const V inverse = hn::Div(one, hn::Add(hn::Add(s, s), one));
  return hn::CopySign(hn::Mul(s, hn::Add(one, inverse)), x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V cosh_f32(D d, V x) {
  const V half = hn::Set(d, 0.5F);
  const V root = exp_bounded_f32(d, at_most(d, hn::Mul(hn::Abs(x), half), hn::Set(d, 88.0F)));
  return hn::MulAdd(hn::Mul(half, root), root, hn::Div(half, hn::Mul(root, root)));
}

/// log(1 + x) for x > -1; NaN from -1 downwards.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log1p_f32(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V sum = hn::Add(one, x);
  // What the sum lost by rounding; of a large number it is nothing, of infinity no number.
  const V lost = hn::Sub(x, hn::Sub(sum, one));
  const V correction = hn::IfThenElseZero(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p24F)), hn::Div(lost, sum));
  return hn::IfThenElse(hn::Eq(sum, one), x, hn::Add(log_f32(d, sum), correction));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V asinh_f32(D d, V x) {
  // From 2^24 on, log(2 |x|); below, log(1 + |x| + (sqrt(x^2 + 1) - 1)).
  const V one = hn::Set(d, 1.0F);
  const V magnitude = hn::Abs(x);
  const auto large = hn::Gt(magnitude, hn::Set(d, 0x1p24F));
  const V square = hn::Mul(magnitude, magnitude);
  const V more = hn::Div(square, hn::Add(one, hn::Sqrt(hn::Add(square, one))));
  const V y = log1p_f32(d, hn::IfThenElse(large, magnitude, hn::Add(magnitude, more)));
  return hn::CopySign(hn::Add(y, hn::IfThenElseZero(large, hn::Set(d, 0.693147181F))), x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V acosh_f32(D d, V x) {
  const V beyond = hn::Sub(x, hn::Set(d, 1.0F));
  const auto large = hn::Gt(x, hn::Set(d, 0x1p24F));
  // Two roots: of numbers below -1 the product would be positive.
  const V root = hn::Mul(hn::Sqrt(beyond), hn::Sqrt(hn::Add(beyond, hn::Set(d, 2.0F))));
  const V y = log1p_f32(d, hn::IfThenElse(large, x, hn::Add(beyond, root)));
  return hn::Add(y, hn::IfThenElseZero(large, hn::Set(d, 0.693147181F)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V atanh_f32(D d, V x) {
  const V magnitude = hn::Abs(x);
  const V ratio = hn::Div(hn::Add(magnitude, magnitude), hn::Sub(hn::Set(d, 1.0F), magnitude));
  return hn::CopySign(hn::Mul(hn::Set(d, 0.5F), log1p_f32(d, ratio)), x);
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
