// Plain loops over strided and broadcast operands: what reference kernels of element-wise operators are made of. Ranges
// of elements may run in parallel; a kernel that reports faults returns one Status per range, of which one is kept.
// Freestanding, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/op.h"

namespace bantam::ops {

/// Elements per task of a parallel element-wise kernel: some microseconds of work.
inline constexpr std::int64_t kElementwiseGrain = 8192;

/// Elements of one row of the result and of up to two operands; `strides` in elements, result first.
struct ElementRow {
  void* y;
  const void* x[2];
  std::int64_t strides[3];
  std::int64_t n;
};

/// Computes a row by the function object `f`.
using RowFunction = void (*)(const void* f, const ElementRow& row);

/// Calls `row`, possibly in parallel, for rows that cover result 0; the first `operands` operands (1 or 2) broadcast to
/// its shape. One copy of the loops for all element types, of which there are more than a hundred pairs.
void map_rows(const Invocation& invocation, int operands, const void* f, RowFunction row);

/// y = f(x) for every element of result 0 and operand 0, which have the same shape.
template <typename TY, typename TX, typename F>
void map_elements(const Invocation& invocation, F f) {
  map_rows(invocation, 1, &f, [](const void* function, const ElementRow& row) {
    const F& apply = *static_cast<const F*>(function);
    auto* y = static_cast<TY*>(row.y);
    const auto* x = static_cast<const TX*>(row.x[0]);
    for (std::int64_t i = 0; i < row.n; ++i) y[i * row.strides[0]] = apply(x[i * row.strides[1]]);
  });
}

/// y = f(a, b) for every element of result 0; operands 0 and 1 broadcast to its shape.
template <typename TY, typename TA, typename TB, typename F>
void map_elements2(const Invocation& invocation, F f) {
  map_rows(invocation, 2, &f, [](const void* function, const ElementRow& row) {
    const F& apply = *static_cast<const F*>(function);
    auto* y = static_cast<TY*>(row.y);
    const auto* a = static_cast<const TA*>(row.x[0]);
    const auto* b = static_cast<const TB*>(row.x[1]);
    for (std::int64_t i = 0; i < row.n; ++i)
      y[i * row.strides[0]] = apply(a[i * row.strides[1]], b[i * row.strides[2]]);
  });
}

/// Marks every operand that has the result's shape and element size as one that the result may overwrite.
inline Footprint overwrite_same_layout(const OpCall& call, int) {
  Footprint result;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorDesc& x = *call.inputs[i].desc;
    bool same = element_size(x.type) == element_size(call.out().type) && x.rank == call.out().rank;
    for (int d = 0; same && d < x.rank; ++d) same = x.dims[d] == call.out().dims[d];
    if (same) result.overwrites[0] |= std::uint64_t{1} << i;
  }
  return result;
}

}  // namespace bantam::ops
