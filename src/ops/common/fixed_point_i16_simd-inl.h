// Logistic function and tanh of ops/fixed_point_i16.h on Highway vectors of int32 that hold int16 numbers, to the bit.
// Included by *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_COMMON_FIXED_POINT_I16_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_COMMON_FIXED_POINT_I16_SIMD_INL_H_
#undef BANTAM_OPS_COMMON_FIXED_POINT_I16_SIMD_INL_H_
#else
#define BANTAM_OPS_COMMON_FIXED_POINT_I16_SIMD_INL_H_
#endif

#include <array>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/fixed_point_i16.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Entry i of the logistic table in the lower half, the step to the next in the upper.
inline constexpr std::array<std::int32_t, 256> kLogisticSteps = [] {
  std::array<std::int32_t, 256> result{};
  const auto& table = fixed_point_detail::kLogisticTable;
  for (std::size_t i = 0; i < 255; ++i) result[i] = table[i] | (table[i + 1] - table[i]) << 16;
  return result;
}();

/// table_argument.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V table_argument(D d, V x, const ActivationInput16& input) {
  const std::int32_t rounding = input.right_shift > 0 ? std::int32_t{1} << (input.right_shift - 1) : 0;
  const V product = hn::Add(hn::Mul(x, hn::Set(d, input.multiplier)), hn::Set(d, rounding));
  return hn::ShiftRightSame(product, input.right_shift);
}

/// The table, `kBits` of a magnitude below its entries interpolated; `beyond` behind its end.
template <int kBits, class D, class V = hn::Vec<D>>
HWY_INLINE V interpolate_logistic(D d, V magnitude, std::int32_t beyond) {
  const hn::RebindToUnsigned<D> u;
  const V index = hn::BitCast(d, hn::ShiftRight<kBits>(hn::BitCast(u, magnitude)));
  const V last = hn::Set(d, 255);
  const V entry = hn::GatherIndex(d, kLogisticSteps.data(), hn::Min(index, last));
  const V low = hn::And(entry, hn::Set(d, 0xffff));
  const V step = hn::BitCast(d, hn::ShiftRight<16>(hn::BitCast(u, entry)));
  const V rest = hn::And(magnitude, hn::Set(d, (1 << kBits) - 1));
  const V inside = hn::Add(hn::ShiftLeft<kBits>(low), hn::Mul(rest, step));
  return hn::IfThenElse(hn::Lt(index, last), inside, hn::Set(d, beyond));
}

/// logistic_i16.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logistic_i16(D d, V x, const ActivationInput16& input) {
  const V argument = table_argument(d, x, input);
  const V q25 = interpolate_logistic<9>(d, hn::Abs(argument), 0x7fff << 10);
  const V half = hn::Set(d, 1 << 9);
  const V falling = hn::Sub(hn::Set(d, (1 << 25) + (1 << 9) - 1), q25);
  return hn::ShiftRight<10>(hn::IfThenElse(hn::Lt(argument, hn::Zero(d)), falling, hn::Add(q25, half)));
}

/// tanh_i16.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_i16(D d, V x, const ActivationInput16& input) {
  constexpr std::int32_t kOne = 1 << 23;
  constexpr std::int32_t kHalf = 1 << 7;
  const V argument = table_argument(d, x, input);
  const V q24 = interpolate_logistic<8>(d, hn::Abs(argument), 0xffff << 8);
  const V falling = hn::Sub(hn::Set(d, kOne + kHalf - 1), q24);
  const V rising = hn::Add(q24, hn::Set(d, kHalf - kOne));
  return hn::ShiftRight<8>(hn::IfThenElse(hn::Lt(argument, hn::Zero(d)), falling, rising));
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
