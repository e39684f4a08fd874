// The sizes and strides of one batched matrix product, gathered once from the descs. Freestanding, values only.
#pragma once

#include <array>
#include <cstdint>

#include "ops/common/dispatch.h"
#include "ops/common/linear_form.h"
#include "ops/common/strides.h"
#include "ops/nn/matmul/matmul.h"

namespace bantam::ops {

/// One operand seen as a batch of matrices; strides in elements.
struct MatrixShape {
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
};

struct MatmulGeometry {
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t k = 0;
  MatrixShape a;  ///< [m,k], transposition applied
  MatrixShape b;  ///< [k,n], transposition applied
  MatrixShape y;  ///< [m,n]
  /// The leading dimensions: one element per matrix; offsets of y, a, b.
  StridedRows<3> batch;
};

/// The two innermost dimensions of `desc`, swapped when `transposed`. Requires rank >= 2.
inline MatrixShape matrix_shape(const TensorDesc& desc, bool transposed) noexcept {
  const int row = desc.rank - 2;
  const int column = desc.rank - 1;
  // A dimension of one element may have any stride; the innermost one otherwise has stride 1.
  const MatrixShape plain{desc.dims[row], desc.dims[column], desc.strides[row], 1};
  if (!transposed) return plain;
  return {plain.columns, plain.rows, plain.column_stride, plain.row_stride};
}

/// The leading dimensions of `desc`, without the matrix.
inline TensorDesc batch_shape(const TensorDesc& desc) noexcept {
  TensorDesc result = desc;
  result.rank = static_cast<std::uint8_t>(desc.rank - 2);
  return result;
}

inline MatmulGeometry matmul_geometry(const MatmulParams& p, const TensorDesc& a, const TensorDesc& b,
                                      const TensorDesc& y) noexcept {
  MatmulGeometry g;
  g.a = matrix_shape(a, p.transpose_a != 0);
  g.b = matrix_shape(b, p.transpose_b != 0);
  g.y = matrix_shape(y, false);
  g.m = g.a.rows;
  g.k = g.a.columns;
  g.n = g.b.columns;
  const TensorDesc batch_y = batch_shape(y);
  const TensorDesc batch_a = batch_shape(a);
  const TensorDesc batch_b = batch_shape(b);
  g.batch = make_rows<3>(batch_y, {&batch_y, &batch_a, &batch_b});
  return g;
}

/// The innermost dimensions of the batch as one tall matrix, where all rows of a and y are equally far apart and there
/// is one b. What is left of the batch has a b of its own for each product.
inline MatmulGeometry fold_batch(const MatmulGeometry& g) noexcept {
  const auto& batch = g.batch;
  // The stride of a single row says nothing.
  const auto in_step = [&](const MatrixShape& matrix, std::size_t i) {
    return g.m == 1 || batch.row_strides[i] == g.m * matrix.row_stride;
  };
  if (batch.row_length < 2 || batch.row_strides[2] != 0 || !in_step(g.y, 0) || !in_step(g.a, 1) ||
      batch.row_length * g.m > 0x7fffffff)
    return g;
  MatmulGeometry folded = g;
  folded.y.row_stride = batch.row_strides[0] / g.m;
  folded.a.row_stride = batch.row_strides[1] / g.m;
  folded.m = static_cast<std::int32_t>(batch.row_length * g.m);
  folded.batch = without_rows(batch);
  return folded;
}

/// The types of the plain form.
constexpr bool is_plain_product(ElementType type) noexcept {
  return is_one_of<double, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>(type);
}

inline Int8Range int8_range(const MatmulParams& p) noexcept {
  return {p.input_zero_point, p.weights_zero_point, p.output_zero_point, p.minimum, p.maximum};
}

}  // namespace bantam::ops
