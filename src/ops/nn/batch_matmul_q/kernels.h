// The kernels of batch_matmul_q behind its variants table in batch_matmul_q.cpp, and what they share. Dense operands.
#pragma once

#include "ops/common/operands.h"
#include "ops/common/strides.h"
#include "ops/nn/batch_matmul_q/batch_matmul_q.h"

namespace bantam::ops::batch_matmul_q {

/// Dimension `from_end` (0: last) of an operand as its transposition makes it look.
inline std::int32_t matrix_dim(const TensorDesc& desc, std::int32_t transposed, int from_end) noexcept {
  return desc.last(transposed != 0 ? 1 - from_end : from_end);
}

/// The dimensions before the matrix, with their strides.
inline TensorDesc leading(const TensorDesc& desc) noexcept {
  TensorDesc lead = desc;
  lead.rank = static_cast<std::uint8_t>(desc.rank - 2);
  return lead;
}

/// Each pair of matrices: sizes, and the distances between neighbours, in elements.
struct Matrices {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t depth;
  std::int64_t a_row;   ///< from one row of a to the next
  std::int64_t a_step;  ///< along the depth
  std::int64_t b_column;
  std::int64_t b_step;

  explicit Matrices(const OpCall& call) noexcept
      : rows(call.out().last(1)),
        columns(call.out().last(0)),
        depth(matrix_dim(call.in(0), call.as<BatchMatmulQParams>().transpose_a, 0)) {
    const auto& p = call.as<BatchMatmulQParams>();
    a_row = p.transpose_a != 0 ? 1 : depth;
    a_step = p.transpose_a != 0 ? rows : 1;
    b_column = p.transpose_b != 0 ? depth : 1;
    b_step = p.transpose_b != 0 ? 1 : columns;
  }
};

/// Calls f(offsets of y, a and b) for all pairs of matrices.
template <typename F>
void for_each_pair(const OpCall& call, F f) {
  const TensorDesc a = leading(call.in(0));
  const TensorDesc b = leading(call.in(1));
  const TensorDesc y = leading(call.out());
  for_each_element(make_rows<3>(y, {&y, &a, &b}), f);
}

/// i8, packed panels (nn/gemm/gemm_i8.h). The scratch holds a packed b, and for each thread rows of a and sums.
bool packed_supports(const OpCall& call);
Footprint packed_footprint(const OpCall& call, int threads);
Status run_packed(const Invocation& call);

}  // namespace bantam::ops::batch_matmul_q
