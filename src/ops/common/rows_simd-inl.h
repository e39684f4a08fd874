// Loops over rows of floats for element-wise Highway kernels: full vectors, then one partial vector through a buffer,
// so that the same code computes every element and nothing beyond the row is touched. Compiled once per instruction
// set.
#if defined(BANTAM_OPS_COMMON_ROWS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_COMMON_ROWS_SIMD_INL_H_
#undef BANTAM_OPS_COMMON_ROWS_SIMD_INL_H_
#else
#define BANTAM_OPS_COMMON_ROWS_SIMD_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "ops/common/short_copy.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Can lanes of that type be loaded and stored by a mask, without touching what the others would be?
template <typename T>
constexpr bool kHasMaskedLanes = HWY_ARCH_X86 && (HWY_TARGET <= HWY_AVX3 || (HWY_TARGET == HWY_AVX2 && sizeof(T) == 4));

/// The first n <= Lanes(d) elements at `from`; the other lanes are 0.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_partial(D d, const T* HWY_RESTRICT from, std::size_t n) {
  if constexpr (kHasMaskedLanes<T>) return hn::MaskedLoad(hn::FirstN(d, n), d, from);
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)] = {};
  for (std::size_t i = 0; i < n; ++i) buffer[i] = from[i];
  return hn::Load(d, buffer);
}

/// Stores the first n <= Lanes(d) lanes.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_partial(hn::Vec<D> v, D d, T* HWY_RESTRICT to, std::size_t n) {
  if constexpr (kHasMaskedLanes<T>) return hn::BlendedStore(v, hn::FirstN(d, n), d, to);
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)] = {};
  hn::Store(v, d, buffer);
  for (std::size_t i = 0; i < n; ++i) to[i] = buffer[i];
}

/// Copies the first n <= kMost elements at `from`; what is behind them in `memory` is 0 then, or what it was.
template <typename T, std::size_t kMost>
HWY_INLINE void load_end(const T* HWY_RESTRICT from, std::size_t n, T (&memory)[kMost]) {
  const hn::CappedTag<T, kMost> d;
  if constexpr (kHasMaskedLanes<T> && hn::MaxLanes(d) == kMost) {
    hn::StoreU(hn::MaskedLoad(hn::FirstN(d, n), d, from), d, memory);
  } else {
    copy_few<kMost>(from, n, memory);
  }
}

/// Copies the first n <= kMost elements of `memory`.
template <typename T, std::size_t kMost>
HWY_INLINE void store_end(const T (&memory)[kMost], std::size_t n, T* HWY_RESTRICT to) {
  const hn::CappedTag<T, kMost> d;
  if constexpr (kHasMaskedLanes<T> && hn::MaxLanes(d) == kMost) {
    hn::BlendedStore(hn::LoadU(d, memory), hn::FirstN(d, n), d, to);
  } else {
    copy_few<kMost>(memory, n, to);
  }
}

/// y[i] = f(d, x[i]) for 0 <= i < n on vectors of float. y may be x.
template <class F>
HWY_INLINE void map_row(std::size_t n, float* y, F f, const float* x) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
  if (i < n) store_partial(f(d, load_partial(d, x + i, n - i)), d, y + i, n - i);
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
