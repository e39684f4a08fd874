// Loops that are unrolled by construction, so that arrays of vectors indexed by their counters live in registers at
// every optimisation level. Included by *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_UNROLL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_UNROLL_INL_H_
#undef BANTAM_OPS_UNROLL_INL_H_
#else
#define BANTAM_OPS_UNROLL_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

template <typename F, int... kIndices>
HWY_INLINE void unroll_indices(F&& f, std::integer_sequence<int, kIndices...>) {
  (f(std::integral_constant<int, kIndices>{}), ...);
}

/// f(0), f(1) ... f(kCount - 1), each with its own constant.
template <int kCount, typename F>
HWY_INLINE void unroll(F&& f) {
  unroll_indices(f, std::make_integer_sequence<int, kCount>());
}

/// Calls tile(size, first) for tiles that cover [0, count): of kTile, and of half as many or of one at the end. What
/// two tiles cover is computed once more, and is the same.
template <int kTile, typename F>
HWY_INLINE void cover(std::int64_t count, F&& tile) {
  constexpr int kHalf = kTile / 2;
  constexpr std::integral_constant<int, kTile> whole;
  constexpr std::integral_constant<int, kHalf> half;
  std::int64_t i = 0;
  for (; i + kTile <= count; i += kTile) tile(whole, i);
  if (i + kHalf < count && count >= kTile) {
    tile(whole, count - kTile);
  } else if (count >= kHalf) {
    for (; i < count; i += kHalf) tile(half, std::min(i, count - kHalf));
  } else {
    for (; i < count; ++i) tile(std::integral_constant<int, 1>(), i);
  }
}

/// The same vector, in a register: gcc would read a value that several multiply-adds use from memory for each of them.
template <class V>
HWY_INLINE V in_register(V v) {
#if HWY_COMPILER_GCC && !HWY_COMPILER_CLANG && HWY_ARCH_X86
  asm("" : "+v"(v.raw));
#endif
  return v;
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
