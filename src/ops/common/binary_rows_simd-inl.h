// Element-wise Highway kernels of two stored int8 or uint8 tensors, the second of which may be f32: rows of wide lanes,
// where an operand may be one element for all. Compiled once per instruction set.
#if defined(BANTAM_OPS_COMMON_BINARY_ROWS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_COMMON_BINARY_ROWS_SIMD_INL_H_
#undef BANTAM_OPS_COMMON_BINARY_ROWS_SIMD_INL_H_
#else
#define BANTAM_OPS_COMMON_BINARY_ROWS_SIMD_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/elementwise.h"
#include "ops/common/fixed_point_simd-inl.h"
#include "ops/common/operand_row_simd-inl.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/common/shared_row.h"
#include "ops/common/strides.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

/// The elements of four vectors of a row, from the first on: v(i) gives vector i.
template <typename T>
class FourVectors {
 public:
  using D = hn::ScalableTag<std::int32_t>;

#if HWY_ARCH_ARM_A64
  HWY_INLINE FourVectors(OperandRow<T> row, std::size_t first) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int16_t, std::uint16_t>;
    const hn::Full128<Wide> d16;
    const auto bytes = row.load(hn::Full128<T>(), first);
    const auto low = hn::PromoteTo(d16, hn::LowerHalf(bytes));
    const auto high = hn::PromoteTo(d16, hn::UpperHalf(hn::Full64<T>(), bytes));
    v_[0] = hn::PromoteTo(D(), hn::LowerHalf(low));
    v_[1] = hn::PromoteTo(D(), hn::UpperHalf(hn::Half<decltype(d16)>(), low));
    v_[2] = hn::PromoteTo(D(), hn::LowerHalf(high));
    v_[3] = hn::PromoteTo(D(), hn::UpperHalf(hn::Half<decltype(d16)>(), high));
  }
  HWY_INLINE hn::Vec<D> operator()(std::size_t i) const { return v_[i]; }

 private:
  hn::Vec<D> v_[4];
#else
  HWY_INLINE FourVectors(OperandRow<T> row, std::size_t first) : row_(row), first_(first) {}
  HWY_INLINE hn::Vec<D> operator()(std::size_t i) const { return row_.load_wide(D(), first_ + i * hn::Lanes(D())); }

 private:
  OperandRow<T> row_;
  std::size_t first_;
#endif
};

template <>
class FourVectors<float> {
 public:
  using D = hn::ScalableTag<float>;

  HWY_INLINE FourVectors(OperandRow<float> row, std::size_t first) : row_(row), first_(first) {}
  HWY_INLINE hn::Vec<D> operator()(std::size_t i) const { return row_.load(D(), first_ + i * hn::Lanes(D())); }

 private:
  OperandRow<float> row_;
  std::size_t first_;
};

/// The same of a row that comes with numbers that were made of its elements beforehand.
template <typename T>
class PreparedVectors : public FourVectors<T> {
 public:
  HWY_INLINE PreparedVectors(OperandRow<T> row, const std::int32_t* prepared, std::size_t first)
      : FourVectors<T>(row, first), prepared_(prepared + first) {}
  HWY_INLINE hn::Vec<hn::ScalableTag<std::int32_t>> prepared(std::size_t i) const {
    const hn::ScalableTag<std::int32_t> d;
    return hn::LoadU(d, prepared_ + i * hn::Lanes(d));
  }

 private:
  const std::int32_t* prepared_;
};

/// Calls f(last_a, last_b, result) with copies of the rows' elements [i, n), at most kMost of them and with zeros
/// behind them, and takes as many of the result.
template <std::size_t kMost, typename T, typename TB, class F>
HWY_INLINE void combine_tail(std::size_t i, std::size_t n, OperandRow<T> a, OperandRow<TB> b, T* y, F f) {
  T tail_a[kMost] = {};
  TB tail_b[kMost] = {};
  T result[kMost];
  f(tail_of(a, i, n - i, tail_a), tail_of(b, i, n - i, tail_b), result);
  store_end(result, n - i, y + i);
}

/// n elements: combine(d, a, b) gives stored values as int32 for two vectors of them. y may be an operand that moves. A
/// combine with kVectors has combine.store(a, b, y) too, which does so for FourVectors of each, and for PreparedVectors
/// of b if `prepared` is what it made of them (else null). It may remember what it saw.
template <bool kPrepared = false, typename T, typename TB, class Combine>
HWY_INLINE void combine_row(Combine& combine, std::size_t n, T* y, OperandRow<T> a, OperandRow<TB> b,
                            const std::int32_t* prepared = nullptr) {
  const hn::ScalableTag<std::int32_t> d;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  std::size_t i = 0;
  if constexpr (requires { Combine::kVectors; }) {
    static_assert(Combine::kVectors == 4);
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      if constexpr (kPrepared) {
        combine.store(FourVectors<T>(a, i), PreparedVectors<TB>(b, prepared, i), y + i);
      } else {
        combine.store(FourVectors<T>(a, i), FourVectors<TB>(b, i), y + i);
      }
    }
    if (n - i > kLanes)
      return combine_tail<4 * kLanes>(i, n, a, b, y, [&](auto last_a, auto last_b, T* result) HWY_ATTR {
        combine.store(FourVectors<T>(last_a, 0), FourVectors<TB>(last_b, 0), result);
      });
  }
  for (; i + kLanes <= n; i += kLanes) store_narrow<T>(d, combine(d, a.load_wide(d, i), b.load_number(d, i)), y + i);
  if (i == n) return;
  combine_tail<kLanes>(i, n, a, b, y, [&](auto last_a, auto last_b, T* result) HWY_ATTR {
    store_narrow<T>(d, combine(d, last_a.load_wide(d, 0), last_b.load_number(d, 0)), result);
  });
}

/// Copies of a shared row, as many numbers of either type.
template <typename T>
using RowCopies = SharedRow<T, 4096>;

/// Elements [begin, end) of rows that share operand 1: what combine makes of its elements is made once for all of them.
/// False if these are not such that it can.
template <typename T, typename TB, class Combine>
HWY_NOINLINE bool combine_prepared(Combine combine, const T* a, const RowCopies<TB>& shared, std::int64_t row_length,
                                   std::int64_t begin, std::int64_t end, T* y) {
  constexpr std::int64_t kLongest = RowCopies<TB>::kLongest;
  std::int32_t row[kLongest];
  if (!combine.prepare(shared.from(0), row_length, row)) return false;
  const SharedRow<std::int32_t, 2 * kLongest> prepared(row, row_length, begin, end);
  // Without a function of its own, which would read and write all of `combine` through memory.
  for (std::int64_t i = begin, n = 0; i < end; i += n) {
    n = std::min(shared.run_at(i, end), prepared.run_at(i, end));
    combine_row<true>(combine, static_cast<std::size_t>(n), y + i, OperandRow<T>{a + i, true},
                      OperandRow<TB>{shared.from(i), true}, prepared.from(i));
  }
  return true;
}

/// The elements [begin, end) of the result. Not in line, but rows are: short ones would take less time than a call.
template <typename T, typename TB, class Combine>
HWY_NOINLINE void combine_range(const Invocation& invocation, const StridedRows<3>& rows, Combine combine,
                                std::int64_t begin, std::int64_t end) {
  auto* y = invocation.output<T>();
  const auto* a = invocation.input<T>(0);
  const auto* b = invocation.input<TB>(1);
  const int shared = shared_operand(rows);
  const auto combine_run = [&](const T* run_a, const TB* run_b, std::int64_t first, std::int64_t n) HWY_ATTR {
    combine_row(combine, static_cast<std::size_t>(n), y + first, OperandRow<T>{run_a, true},
                OperandRow<TB>{run_b, true});
  };
  if (shared == 2 && RowCopies<TB>::saves_time(rows.row_length, begin, end)) {
    const RowCopies<TB> copies(b, rows.row_length, begin, end);
    if constexpr (requires { combine.prepares(); }) {
      if (combine.prepares() && combine_prepared<T, TB>(combine, a, copies, rows.row_length, begin, end, y)) return;
    }
    copies.for_each_run(begin, end, [&](std::int64_t first, std::int64_t n, const TB* row) HWY_ATTR {
      combine_run(a + first, row, first, n);
    });
    return;
  }
  if (shared == 1 && RowCopies<T>::saves_time(rows.row_length, begin, end)) {
    const RowCopies<T> copies(a, rows.row_length, begin, end);
    copies.for_each_run(begin, end, [&](std::int64_t first, std::int64_t n, const T* row) HWY_ATTR {
      combine_run(row, b + first, first, n);
    });
    return;
  }
  for_each_pair_of_rows<T, TB>(invocation, rows, begin, end,
                               [&](std::int64_t first, std::size_t n, OperandRow<T> row_a, OperandRow<TB> row_b)
                                   HWY_ATTR { combine_row(combine, n, y + first, row_a, row_b); });
}

/// The result's elements from operands 0 and 1, which are contiguous or broadcast within its rows; TB is operand 1's
/// type, T or f32.
template <typename T, typename TB, class Combine>
void combine_rows(const Invocation& invocation, const StridedRows<3>& rows, const Combine& combine) {
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    combine_range<T, TB>(invocation, rows, combine, begin, end);
  });
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BANTAM_OPS_COMMON_BINARY_ROWS_SIMD_INL_H_
