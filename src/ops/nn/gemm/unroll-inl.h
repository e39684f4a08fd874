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

/// How a row of results is cut into tiles of which there is one for each of a few sizes, so that it takes least time: a
/// tile takes as long as its results, or as kLeast of them, and one more.
template <int kMost, int kLeast>
class TileCuts {
 public:
  /// Is there a tile of that size?
  static constexpr bool has(int size) { return size == kMost || size == 10 || (size <= 7 && size != 2); }

  constexpr TileCuts() {
    int least[kCounts] = {};
    for (int count = 1; count < kCounts; ++count)
      for (int size = 1; size <= std::min(count, kMost); ++size) {
        if (!has(size)) continue;
        const int cost = std::max(size, kLeast) + 1 + least[count - size];
        if (first_[count] != 0 && cost > least[count]) continue;
        least[count] = cost;
        first_[count] = size;
      }
  }

  /// The first tile of `count` results.
  constexpr int first(std::int64_t count) const { return count < kCounts ? first_[count] : kMost; }

 private:
  static constexpr int kCounts = 2 * kMost;
  int first_[kCounts] = {};
};

/// Calls tile(size, first) for tiles that make up [0, count), as TileCuts cuts it.
template <int kMost, int kLeast, typename F>
HWY_INLINE void cover_exactly(std::int64_t count, F&& tile) {
  using Cuts = TileCuts<kMost, kLeast>;
  static constexpr Cuts kCuts;
  for (std::int64_t i = 0; i < count;) {
    const int size = kCuts.first(count - i);
    unroll<kMost>([&](auto index) HWY_ATTR {
      constexpr int kSize = index + 1;
      if constexpr (Cuts::has(kSize))
        if (size == kSize) tile(std::integral_constant<int, kSize>(), i);
    });
    i += size;
  }
}

/// How many of kCount windows of kTaps columns, kStride apart, see column kColumn of those that they see together.
template <int kColumn, int kTaps, int kStride, int kCount>
constexpr int windows_of_column() {
  int windows = 0;
  for (int tap = 0; tap < kTaps; ++tap)
    windows += kColumn >= tap && (kColumn - tap) % kStride == 0 && (kColumn - tap) / kStride < kCount ? 1 : 0;
  return windows;
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
