// Sums of the bytes and of the 16-bit numbers of a row. Included by *_simd.cpp files inside Highway's per-target
// compilation.
#if defined(BANTAM_OPS_GEMM_SUMS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_GEMM_SUMS_SIMD_INL_H_
#undef BANTAM_OPS_GEMM_SUMS_SIMD_INL_H_
#else
#define BANTAM_OPS_GEMM_SUMS_SIMD_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Adds the first of `n` bytes with the bits of `flip` inverted, as many as there are in whole vectors, and says how
/// many these are.
template <class D8>
HWY_INLINE std::int64_t add_whole_vectors(D8 d8, const std::uint8_t* from, std::int64_t n, std::uint8_t flip,
                                          std::uint32_t& sum) {
  const hn::Repartition<std::uint64_t, D8> d64;
  constexpr auto kBytes = static_cast<std::int64_t>(hn::MaxLanes(D8()));
  if (n < kBytes) return 0;
  const auto flips = hn::Set(d8, flip);
  auto sums = hn::Zero(d64);
  std::int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) sums = hn::Add(sums, hn::SumsOf8(hn::Xor(hn::LoadU(d8, from + i), flips)));
  sum += static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(d64, sums)));
  return i;
}

/// The sum of `n` bytes with the bits of `flip` inverted, wrapping.
inline std::uint32_t row_sum_u8(const std::uint8_t* from, std::int64_t n, std::uint8_t flip) {
  std::uint32_t sum = 0;
  std::int64_t i = add_whole_vectors(hn::ScalableTag<std::uint8_t>(), from, n, flip, sum);
  i += add_whole_vectors(hn::CappedTag<std::uint8_t, 16>(), from + i, n - i, flip, sum);
  i += add_whole_vectors(hn::CappedTag<std::uint8_t, 8>(), from + i, n - i, flip, sum);
  for (; i < n; ++i) sum += static_cast<std::uint8_t>(from[i] ^ flip);
  return sum;
}

/// The sum of `n` signed bytes with the bits of `flip` inverted, wrapping.
inline std::uint32_t row_sum_i8(const std::uint8_t* from, std::int64_t n, std::uint8_t flip) {
  return row_sum_u8(from, n, flip ^ 0x80) - static_cast<std::uint32_t>(n) * 128;
}

/// The sum of `n` numbers, wrapping.
inline std::uint32_t row_sum_i16(const std::int16_t* from, std::int64_t n) {
  const hn::ScalableTag<std::int16_t> d16;
  const hn::RepartitionToWide<decltype(d16)> d32;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d16));
  const auto ones = hn::Set(d16, 1);
  auto low = hn::Zero(d32);
  auto high = hn::Zero(d32);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    low = hn::ReorderWidenMulAccumulate(d32, hn::LoadU(d16, from + i), ones, low, high);
  auto sum = static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(d32, hn::Add(low, high))));
  for (; i < n; ++i) sum += static_cast<std::uint32_t>(std::int32_t{from[i]});
  return sum;
}

}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
