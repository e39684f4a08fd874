#include "ops/common/elementwise.h"

#include <array>

#include "ops/common/parallel.h"
#include "ops/common/strides.h"

namespace bantam::ops {
namespace {

/// N: the result and the operands.
template <int N>
void map_rows_of(const Invocation& invocation, const std::array<const TensorDesc*, N>& descs, const void* f,
                 RowFunction row) {
  const auto rows = make_rows<N>(invocation.out(), descs);
  auto* y = invocation.output<std::byte>();
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) {
      ElementRow piece{y + offsets[0] * element_size(descs[0]->type), {}, {rows.row_strides[0]}, n};
      for (int i = 1; i < N; ++i) {
        const auto k = static_cast<std::size_t>(i);
        piece.x[k - 1] = invocation.input<std::byte>(i - 1) + offsets[k] * element_size(descs[k]->type);
        piece.strides[k] = rows.row_strides[k];
      }
      row(f, piece);
    });
  });
}

}  // namespace

void map_rows(const Invocation& invocation, int operands, const void* f, RowFunction row) {
  const TensorDesc* y = &invocation.out();
  if (operands == 1) {
    map_rows_of<2>(invocation, {y, &invocation.in(0)}, f, row);
  } else {
    map_rows_of<3>(invocation, {y, &invocation.in(0), &invocation.in(1)}, f, row);
  }
}

}  // namespace bantam::ops
