// Plain loops over strided and broadcast operands: what reference kernels of element-wise operators are made of. Ranges
// of elements may run in parallel; a kernel that reports faults returns one Status per range, of which one is kept.
// Freestanding, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/common/parallel.h"
#include "ops/common/strides.h"
#include "ops/op.h"

namespace bantam::ops {

/// Elements per task of a parallel element-wise kernel: some microseconds of work.
inline constexpr std::int64_t kElementwiseGrain = 8192;

/// y = f(x) for every element of result 0 and operand 0, which have the same shape.
template <typename TY, typename TX, typename F>
void map_elements(const Invocation& invocation, F f) {
  const auto rows = make_rows<2>(invocation.out(), {&invocation.out(), &invocation.in(0)});
  auto* y = invocation.output<TY>();
  const auto* x = invocation.input<TX>(0);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i)
        y[offsets[0] + i * rows.row_strides[0]] = f(x[offsets[1] + i * rows.row_strides[1]]);
    });
  });
}

/// y = f(a, b) for every element of result 0; operands 0 and 1 broadcast to its shape.
template <typename TY, typename TA, typename TB, typename F>
void map_elements2(const Invocation& invocation, F f) {
  const auto rows = make_rows<3>(invocation.out(), {&invocation.out(), &invocation.in(0), &invocation.in(1)});
  auto* y = invocation.output<TY>();
  const auto* a = invocation.input<TA>(0);
  const auto* b = invocation.input<TB>(1);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i)
        y[offsets[0] + i * rows.row_strides[0]] =
            f(a[offsets[1] + i * rows.row_strides[1]], b[offsets[2] + i * rows.row_strides[2]]);
    });
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
