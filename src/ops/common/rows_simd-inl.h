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
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/short_copy.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Can lanes of that type be loaded and stored by a mask, without touching what the others would be?
template <typename T>
constexpr bool kHasMaskedLanes = HWY_ARCH_X86 && (HWY_TARGET <= HWY_AVX3 || (HWY_TARGET == HWY_AVX2 && sizeof(T) == 4));

/// The same, as fast as without a mask? A store of AVX2's takes 14 cycles and more on processors of AMD.
template <typename T>
constexpr bool kHasMaskedStores = (HWY_TARGET != HWY_AVX2) && kHasMaskedLanes<T>;

/// The unsigned number of that many bytes, up to 8.
template <std::size_t kBytes>
using NumberOf = std::conditional_t<
    kBytes == 8, std::uint64_t,
    std::conditional_t<kBytes == 4, std::uint32_t, std::conditional_t<kBytes == 2, std::uint16_t, std::uint8_t>>>;

/// The first n <= MaxLanes(d) elements at `from`, the other lanes 0, by way of registers: a vector that is loaded where
/// parts of it were just stored waits for these.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_few(D d, const T* HWY_RESTRICT from, std::size_t n) {
  constexpr std::size_t kHalf = hn::MaxLanes(d) / 2;
  constexpr std::size_t kBytes = hn::MaxLanes(d) * sizeof(T);
  const auto low = [&](std::size_t i, std::size_t count) HWY_ATTR {
    return low_bytes<sizeof(T)>(reinterpret_cast<const std::uint8_t*>(from + i),
                                static_cast<std::int64_t>(count * sizeof(T)));
  };
  if constexpr (kBytes > 16) {
    const hn::Half<D> half;
    if (n <= kHalf) return hn::ZeroExtendVector(d, load_few(half, from, n));
    return hn::Combine(d, load_few(half, from + kHalf, n - kHalf), hn::LoadU(half, from));
  } else if constexpr (kBytes == 16) {
    const hn::Repartition<std::uint64_t, D> words;
    const std::uint64_t first = low(0, n < kHalf ? n : kHalf);
    const std::uint64_t second = n > kHalf ? low(kHalf, n - kHalf) : 0;
    return hn::BitCast(d, hn::InterleaveLower(words, hn::Set(words, first), hn::Set(words, second)));
  } else {
    const hn::CappedTag<NumberOf<kBytes>, 1> number;
    return hn::BitCast(d, hn::Set(number, static_cast<NumberOf<kBytes>>(low(0, n))));
  }
}

/// Stores the first n <= MaxLanes(d) lanes. A load of what follows them does not wait, as it does after a store by a
/// mask: so where rows are computed in place.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_few(hn::Vec<D> v, D d, T* HWY_RESTRICT to, std::size_t n) {
  constexpr std::size_t kHalf = hn::MaxLanes(d) / 2;
  constexpr std::size_t kBytes = hn::MaxLanes(d) * sizeof(T);
  if (n == hn::MaxLanes(d)) return hn::StoreU(v, d, to);
  if constexpr (kBytes > 8) {
    const hn::Half<D> half;
    if (n < kHalf) return store_few(hn::LowerHalf(half, v), half, to, n);
    hn::StoreU(hn::LowerHalf(half, v), half, to);
    store_few(hn::UpperHalf(half, v), half, to + kHalf, n - kHalf);
  } else {
    const hn::CappedTag<NumberOf<kBytes>, 1> number;
    store_low_bytes<sizeof(T)>(hn::GetLane(hn::BitCast(number, v)), static_cast<std::int64_t>(n * sizeof(T)),
                               reinterpret_cast<std::uint8_t*>(to));
  }
}

/// The first n <= Lanes(d) elements at `from`; the other lanes are 0.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_partial(D d, const T* HWY_RESTRICT from, std::size_t n) {
  if constexpr (kHasMaskedLanes<T>) return hn::MaskedLoad(hn::FirstN(d, n), d, from);
  return load_few(d, from, n);
}

/// Stores the first n <= Lanes(d) lanes.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_partial(hn::Vec<D> v, D d, T* HWY_RESTRICT to, std::size_t n) {
  if constexpr (kHasMaskedStores<T>) return hn::BlendedStore(v, hn::FirstN(d, n), d, to);
  store_few(v, d, to, n);
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
  if constexpr (kHasMaskedStores<T> && hn::MaxLanes(d) == kMost) {
    hn::BlendedStore(hn::LoadU(d, memory), hn::FirstN(d, n), d, to);
  } else {
    copy_few<kMost>(memory, n, to);
  }
}

/// Calls f(d) of the smallest vectors of 4, 8 and so on up to all lanes that hold n elements: the end of a row.
template <class D, class F>
HWY_INLINE void with_few_lanes(D d, std::size_t n, F f) {
  if constexpr (hn::MaxLanes(d) > 4) {
    if (n <= hn::MaxLanes(d) / 2) return with_few_lanes(hn::Half<D>(), n, f);
  }
  f(d);
}

/// y[i] = f(d, x[i]) for 0 <= i < n on vectors of float. y may be x.
template <class F>
HWY_INLINE void map_row(std::size_t n, float* y, F f, const float* x) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
  if (i < n) store_few(f(d, load_partial(d, x + i, n - i)), d, y + i, n - i);
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
