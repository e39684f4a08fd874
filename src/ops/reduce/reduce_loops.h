// What reductions over a set of axes share: their shapes and their loop nests. Freestanding, pure functions.
#pragma once

#include <cstdint>

#include "ops/common/parallel.h"
#include "ops/common/strides.h"
#include "ops/op.h"

namespace bantam::ops {

/// Checks the axes, which must be normalised and ascending, and the flag `keep_dims`, and makes the result's desc.
Status infer_reduction(const IntList& axes, std::int32_t keep_dims, const TensorDesc& x, ElementType type,
                       TensorDesc* result);

/// A reduction as two nests: the kept elements (operand 0 is the result, operand 1 is x) and, at each of them, the
/// reduced elements of x.
struct ReduceLoops {
  StridedRows<2> kept;
  StridedRows<1> reduced;

  /// True where neighbouring kept elements are reduced side by side, false along contiguous rows of reduced ones.
  bool by_columns() const noexcept { return !reduced.contiguous(0) || reduced.row_length == 1; }
  /// True where the kept elements are the columns of one matrix whose rows are the reduced ones.
  bool is_matrix() const noexcept { return by_columns() && reduced.outer_rank == 0 && kept.outer_rank == 0; }
  /// True when there are elements, and rows or columns of them that vectors can read.
  bool suit_vectors() const noexcept {
    return reduced.elements != 0 && kept.elements != 0 && (!by_columns() || kept.all_contiguous());
  }
};

ReduceLoops make_reduce_loops(const IntList& axes, std::int32_t keep_dims, const TensorDesc& x,
                              const TensorDesc& y) noexcept;

/// Kept elements per task of a parallel reduction: some microseconds of work.
std::int64_t reduce_grain(const ReduceLoops& loops) noexcept;

/// Should threads share the rows of the matrix, rather than its columns? Most likely each has written the rows that are
/// then its own, and the caches of processors exchange nothing but a few totals.
bool shares_rows(const ReduceLoops& loops, int threads) noexcept;

/// Rows per task.
std::int64_t row_grain(const ReduceLoops& loops) noexcept;

/// Sets each result to reduce_one(reduced elements, the first of them in operand 0).
template <typename T, typename Y = T, typename F>
void for_each_result(const Invocation& invocation, const ReduceLoops& loops, F reduce_one) {
  const auto* x = invocation.input<T>(0);
  auto* y = invocation.output<Y>();
  parallel_ranges(*invocation.threads, loops.kept.elements, reduce_grain(loops),
                  [&](std::int64_t begin, std::int64_t end) {
                    for_each_segment(loops.kept, begin, end, [&](const auto& offsets, std::int64_t n) {
                      for (std::int64_t i = 0; i < n; ++i) {
                        const T* from = x + offsets[1] + i * loops.kept.row_strides[1];
                        y[offsets[0] + i * loops.kept.row_strides[0]] = reduce_one(loops.reduced, from);
                      }
                    });
                  });
}

}  // namespace bantam::ops
