// Element-wise Highway kernels of two stored int8 or uint8 tensors: rows of wide lanes, where an operand may be one
// element for all. Compiled once per instruction set.
#if defined(BANTAM_OPS_COMMON_BINARY_ROWS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_COMMON_BINARY_ROWS_SIMD_INL_H_
#undef BANTAM_OPS_COMMON_BINARY_ROWS_SIMD_INL_H_
#else
#define BANTAM_OPS_COMMON_BINARY_ROWS_SIMD_INL_H_
#endif

#include "hwy/highway.h"
#include "ops/common/elementwise.h"
#include "ops/common/fixed_point_simd-inl.h"
#include "ops/common/parallel.h"
#include "ops/common/strides.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

/// n elements: combine(d, a, b) gives stored values as int32 for two vectors of them. An operand that does not move is
/// one element for all; y may be an operand that moves. A combine with kVectors has combine.store(a, b, y) too, which
/// does so for as many vectors at once: a(v) and b(v) are what it combines.
template <typename T, class Combine>
HWY_INLINE void combine_row(Combine combine, std::size_t n, T* y, const T* a, bool a_moves, const T* b, bool b_moves) {
  const hn::ScalableTag<std::int32_t> d;
  const std::size_t lanes = hn::Lanes(d);
  constexpr std::size_t kMaxLanes = HWY_MAX_BYTES / sizeof(std::int32_t);
  const auto load = [&](const T* x, bool moves, std::size_t i)
                        HWY_ATTR { return moves ? load_wide(d, x + i) : hn::Set(d, static_cast<std::int32_t>(*x)); };
  std::size_t i = 0;
  if constexpr (requires { Combine::kVectors; }) {
    for (; i + Combine::kVectors * lanes <= n; i += Combine::kVectors * lanes)
      combine.store([&](std::size_t v) HWY_ATTR { return load(a, a_moves, i + v * lanes); },
                    [&](std::size_t v) HWY_ATTR { return load(b, b_moves, i + v * lanes); }, y + i);
  }
  for (; i + lanes <= n; i += lanes) store_narrow<T>(d, combine(d, load(a, a_moves, i), load(b, b_moves, i)), y + i);
  if (i == n) return;
  T tail_a[kMaxLanes] = {};
  T tail_b[kMaxLanes] = {};
  T result[kMaxLanes] = {};
  for (std::size_t k = 0; k < n - i; ++k) {
    tail_a[k] = a[a_moves ? i + k : 0];
    tail_b[k] = b[b_moves ? i + k : 0];
  }
  store_narrow<T>(d, combine(d, load_wide(d, tail_a), load_wide(d, tail_b)), result);
  for (std::size_t k = 0; k < n - i; ++k) y[i + k] = result[k];
}

/// The elements [begin, end) of the result. Not in line, but rows are: short ones would take less time than a call.
template <typename T, class Combine>
HWY_NOINLINE void combine_range(const Invocation& invocation, const StridedRows<3>& rows, const Combine& combine,
                                std::int64_t begin, std::int64_t end) {
  auto* y = invocation.output<T>();
  const auto* a = invocation.input<T>(0);
  const auto* b = invocation.input<T>(1);
  for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
    combine_row(combine, static_cast<std::size_t>(n), y + offsets[0], a + offsets[1], rows.contiguous(1),
                b + offsets[2], rows.contiguous(2));
  });
}

/// The result's elements from operands 0 and 1, which are contiguous or broadcast within its rows.
template <typename T, class Combine>
void combine_rows(const Invocation& invocation, const StridedRows<3>& rows, const Combine& combine) {
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    combine_range<T>(invocation, rows, combine, begin, end);
  });
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BANTAM_OPS_COMMON_BINARY_ROWS_SIMD_INL_H_
