// Sums of 8- and 16-bit integers as 32-bit ones: vectors run over neighbouring results, or along rows of terms.
#include <algorithm>

#include "ops/common/dispatch.h"
#include "ops/common/parallel.h"
#include "ops/reduce/reduce/kernels.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/reduce/reduce_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/reduce/reduce_wide_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Wide = hn::ScalableTag<std::int32_t>;
using WideVector = hn::Vec<Wide>;
constexpr auto kWideLanes = static_cast<std::int64_t>(hn::MaxLanes(Wide()));

template <typename T>
HWY_INLINE WideVector load_wide(const T* from) {
  return hn::PromoteTo(Wide(), hn::LoadU(hn::Rebind<T, Wide>(), from));
}

/// kVectors vectors of neighbouring results.
template <int kVectors, typename T>
HWY_INLINE void sum_vectors(const StridedRows<1>& reduced, const T* x, std::int32_t* y) {
  WideVector sums[kVectors];
  unroll<kVectors>([&](auto v) HWY_ATTR { sums[v] = hn::Zero(Wide()); });
  for_each_row(reduced, [&](const auto& offsets, std::int64_t rows) HWY_ATTR {
    const T* from = x + offsets[0];
    for (std::int64_t i = 0; i < rows; ++i, from += reduced.row_strides[0])
      unroll<kVectors>([&](auto v) HWY_ATTR { sums[v] = hn::Add(sums[v], load_wide(from + v * kWideLanes)); });
  });
  unroll<kVectors>([&](auto v) HWY_ATTR { hn::StoreU(sums[v], Wide(), y + v * kWideLanes); });
}

/// n neighbouring results; the last vector may come twice.
template <typename T>
void sum_columns(const StridedRows<1>& reduced, const T* x, std::int64_t n, std::int32_t* y) {
  constexpr int kVectors = 4;
  std::int64_t i = 0;
  for (; i + kVectors * kWideLanes <= n; i += kVectors * kWideLanes) sum_vectors<kVectors>(reduced, x + i, y + i);
  if (n < kWideLanes) {
    for (; i < n; ++i) y[i] = wide_sum(reduced, x + i);
    return;
  }
  for (; i < n; i += kWideLanes) {
    const std::int64_t first = std::min(i, n - kWideLanes);
    sum_vectors<1>(reduced, x + first, y + first);
  }
}

/// One result, of contiguous rows of terms.
template <typename T>
std::int32_t sum_rows(const StridedRows<1>& reduced, const T* x) {
  WideVector sums = hn::Zero(Wide());
  std::uint32_t rest = 0;
  for_each_row(reduced, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
    const T* from = x + offsets[0];
    std::int64_t i = 0;
    for (; i + kWideLanes <= n; i += kWideLanes) sums = hn::Add(sums, load_wide(from + i));
    for (; i < n; ++i) rest += static_cast<std::uint32_t>(std::int32_t{from[i]});
  });
  return static_cast<std::int32_t>(rest + static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(Wide(), sums))));
}

template <typename T>
void sum_range(const Invocation& call, const ReduceLoops& loops, std::int64_t begin, std::int64_t end) {
  for_each_segment(loops.kept, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
    const T* x = call.input<T>(0) + offsets[1];
    std::int32_t* y = call.output<std::int32_t>() + offsets[0];
    if (loops.by_columns()) return sum_columns(loops.reduced, x, n, y);
    for (std::int64_t i = 0; i < n; ++i)
      y[i * loops.kept.row_strides[0]] = sum_rows(loops.reduced, x + i * loops.kept.row_strides[1]);
  });
}

void run_wide(const Invocation& call, const ReduceLoops& loops) {
  dispatch_type<std::int8_t, std::uint8_t, std::int16_t>(call.in(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_ranges(*call.threads, loops.kept.elements, reduce_grain(loops),
                    [&](std::int64_t begin, std::int64_t end) { sum_range<T>(call, loops, begin, end); });
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_wide);

bool supports_wide_sums(const OpCall& call) {
  const auto& p = call.as<ReduceParams>();
  return p.wide != 0 && make_reduce_loops(p.axes, p.keep_dims, call.in(0), call.out()).suit_vectors();
}

Status run_wide_sums(const Invocation& call) {
  const auto& p = call.as<ReduceParams>();
  HWY_DYNAMIC_DISPATCH(run_wide)(call, make_reduce_loops(p.axes, p.keep_dims, call.in(0), call.out()));
  return ok_status();
}

}  // namespace bantam::ops
#endif
