// Maxima and minima of 8-bit integers: vectors run over neighbouring results, or along rows.
#include <algorithm>
#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/parallel.h"
#include "ops/reduce/reduce/kernels.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/reduce/reduce_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/reduce/reduce_extremes_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The larger of two numbers, or vectors of them, or the smaller.
template <bool kLargest>
struct Extreme {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    if constexpr (std::is_arithmetic_v<V>) {
      return kLargest ? std::max(a, b) : std::min(a, b);
    } else {
      return kLargest ? hn::Max(a, b) : hn::Min(a, b);
    }
  }
};

template <typename T>
using Bytes = hn::ScalableTag<T>;
template <typename T>
constexpr auto kByteLanes = static_cast<std::int64_t>(hn::MaxLanes(Bytes<T>()));

/// kVectors vectors of D of neighbouring results.
template <int kVectors, class D, typename T, class E>
HWY_INLINE void extreme_vectors(D d, const StridedRows<1>& reduced, const T* x, T* y, E extreme) {
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  hn::Vec<D> found[kVectors];
  unroll<kVectors>([&](auto v) HWY_ATTR { found[v] = hn::LoadU(d, x + v * kLanes); });  // the first row
  for_each_row(reduced, [&](const auto& offsets, std::int64_t rows) HWY_ATTR {
    const T* from = x + offsets[0];
    for (std::int64_t i = 0; i < rows; ++i, from += reduced.row_strides[0])
      unroll<kVectors>([&](auto v) HWY_ATTR { found[v] = extreme(found[v], hn::LoadU(d, from + v * kLanes)); });
  });
  unroll<kVectors>([&](auto v) HWY_ATTR { hn::StoreU(found[v], d, y + v * kLanes); });
}

/// n neighbouring results, at least a vector of D; the last vector may come twice.
template <class D, typename T, class E>
HWY_INLINE void extreme_of_vectors(D d, const StridedRows<1>& reduced, const T* x, std::int64_t n, T* y, E extreme) {
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  constexpr int kVectors = 4;
  std::int64_t i = 0;
  for (; i + kVectors * kLanes <= n; i += kVectors * kLanes)
    extreme_vectors<kVectors>(d, reduced, x + i, y + i, extreme);
  for (; i < n; i += kLanes) {
    const std::int64_t first = std::min(i, n - kLanes);
    extreme_vectors<1>(d, reduced, x + first, y + first, extreme);
  }
}

template <typename T, class E>
void extreme_columns(const StridedRows<1>& reduced, const T* x, std::int64_t n, T* y, E extreme) {
  if (n >= kByteLanes<T>) return extreme_of_vectors(Bytes<T>(), reduced, x, n, y, extreme);
  if (n >= 8) return extreme_of_vectors(hn::CappedTag<T, 8>(), reduced, x, n, y, extreme);
  for (std::int64_t i = 0; i < n; ++i) {
    T found = x[i];
    for_each_element(reduced, [&](const auto& offsets) { found = extreme(found, x[i + offsets[0]]); });
    y[i] = found;
  }
}

/// Of n contiguous bytes and `found`.
template <typename T, class E>
HWY_INLINE T extreme_of_row(const T* x, std::int64_t n, T found, E extreme) {
  const hn::Full128<T> d;
  constexpr std::int64_t kLanes = 16;
  if (n < kLanes) {
    for (std::int64_t i = 0; i < n; ++i) found = extreme(found, x[i]);
    return found;
  }
  auto part = hn::LoadU(d, x + n - kLanes);  // some of them may come twice
  std::int64_t i = 0;
  if (n >= kByteLanes<T>) {
    const Bytes<T> wide;
    auto all = hn::LoadU(wide, x);
    for (i = kByteLanes<T>; i + kByteLanes<T> <= n; i += kByteLanes<T>) all = extreme(all, hn::LoadU(wide, x + i));
    HWY_ALIGN T parts[kByteLanes<T>];
    hn::Store(all, wide, parts);
    for (std::int64_t k = 0; k < kByteLanes<T>; k += kLanes) part = extreme(part, hn::Load(d, parts + k));
  }
  for (; i + kLanes <= n; i += kLanes) part = extreme(part, hn::LoadU(d, x + i));
  part = extreme(part, hn::ShiftRightBytes<8>(d, part));
  HWY_ALIGN T last[kLanes];
  hn::Store(part, d, last);
  for (std::int64_t k = 0; k < kLanes / 2; ++k) found = extreme(found, last[k]);
  return found;
}

/// Of all such rows.
template <typename T, class E>
HWY_INLINE T extreme_of_rows(const StridedRows<1>& rows, const T* x, E extreme) {
  if (rows.outer_rank == 0) return extreme_of_row(x, rows.row_length, *x, extreme);
  T found = *x;
  for_each_row(rows, [&](const auto& offsets, std::int64_t n)
                         HWY_ATTR { found = extreme_of_row(x + offsets[0], n, found, extreme); });
  return found;
}

template <typename T, class E>
void extreme_range(const Invocation& call, const ReduceLoops& loops, E extreme, std::int64_t begin, std::int64_t end) {
  for_each_segment(loops.kept, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
    const T* x = call.input<T>(0) + offsets[1];
    T* y = call.output<T>() + offsets[0];
    if (loops.by_columns()) return extreme_columns(loops.reduced, x, n, y, extreme);
    for (std::int64_t i = 0; i < n; ++i) {
      const T* from = x + i * loops.kept.row_strides[1];
      y[i * loops.kept.row_strides[0]] = extreme_of_rows(loops.reduced, from, extreme);
    }
  });
}

void run_extremes(const Invocation& call, const ReduceLoops& loops) {
  dispatch_type<std::int8_t, std::uint8_t>(call.in(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool largest = call.as<ReduceParams>().function == ReduceFunction::kMax;
    parallel_ranges(*call.threads, loops.kept.elements, reduce_grain(loops), [&](std::int64_t begin, std::int64_t end) {
      largest ? extreme_range<T>(call, loops, Extreme<true>(), begin, end)
              : extreme_range<T>(call, loops, Extreme<false>(), begin, end);
    });
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_extremes);

bool supports_extremes_of_bytes(const OpCall& call) {
  const auto& p = call.as<ReduceParams>();
  return (p.function == ReduceFunction::kMax || p.function == ReduceFunction::kMin) &&
         is_one_of<std::int8_t, std::uint8_t>(call.in(0).type) &&
         make_reduce_loops(p.axes, p.keep_dims, call.in(0), call.out()).suit_vectors();
}

Status run_extremes_of_bytes(const Invocation& call) {
  const auto& p = call.as<ReduceParams>();
  HWY_DYNAMIC_DISPATCH(run_extremes)(call, make_reduce_loops(p.axes, p.keep_dims, call.in(0), call.out()));
  return ok_status();
}

}  // namespace bantam::ops
#endif
