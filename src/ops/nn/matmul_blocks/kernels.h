// The kernels of matmul_blocks behind its variants table in matmul_blocks.cpp, and what they share.
#pragma once

#include "ops/common/half.h"
#include "ops/nn/matmul/geometry.h"
#include "ops/nn/matmul_blocks/matmul_blocks.h"

namespace bantam::ops::matmul_blocks {

/// The weights of one application, by column and block.
struct Blocks {
  explicit Blocks(const Invocation& call) noexcept
      : bits(call.as<MatmulBlocksParams>().bits),
        size(call.as<MatmulBlocksParams>().block_size),
        count(call.in(1).dims[1]),
        bytes(call.in(1).dims[2]),
        data_(call.input<std::uint8_t>(1)),
        scales_(call.inputs[2]),
        zero_points_(call.has(3) ? call.inputs[3] : Tensor{}) {}

  const std::uint8_t* block(std::int64_t n, std::int64_t b) const noexcept { return data_ + (n * count + b) * bytes; }

  float scale(std::int64_t n, std::int64_t b) const noexcept {
    const std::int64_t i = n * count + b;
    return scales_.desc->type == ElementType::kF16 ? to_f32(scales_.as<const Half>()[i]) : scales_.as<const float>()[i];
  }

  float zero_point(std::int64_t n, std::int64_t b) const noexcept {
    const std::int64_t i = n * count + b;
    if (zero_points_.data == nullptr) return static_cast<float>(1 << (bits - 1));
    return zero_points_.desc->type == ElementType::kU8 ? static_cast<float>(zero_points_.as<const std::uint8_t>()[i])
                                                       : zero_points_.as<const float>()[i];
  }

  std::int32_t bits;
  std::int64_t size;
  std::int64_t count;  ///< per column
  std::int64_t bytes;  ///< per block

 private:
  const std::uint8_t* data_;
  Tensor scales_;
  Tensor zero_points_;
};

/// Rows of a and y; the weights are no part of it.
struct Rows {
  explicit Rows(const OpCall& call) noexcept : Rows(call.in(0), call.out()) {}
  explicit Rows(const Invocation& call) noexcept : Rows(call.in(0), call.out()) {}

  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int64_t n = 0;
  std::int64_t a_stride = 0;
  std::int64_t y_stride = 0;
  StridedRows<2> batch;  ///< one element per matrix; offsets of y and a

 private:
  Rows(const TensorDesc& a, const TensorDesc& y) noexcept {
    const MatrixShape left = matrix_shape(a, false);
    const MatrixShape result = matrix_shape(y, false);
    m = left.rows;
    k = left.columns;
    n = result.columns;
    a_stride = left.row_stride;
    y_stride = result.row_stride;
    const TensorDesc batch_y = batch_shape(y);
    const TensorDesc batch_a = batch_shape(a);
    batch = make_rows<2>(batch_y, {&batch_y, &batch_a});
  }
};

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

/// Constant weights.
bool panels_supports(const OpCall& call);
Footprint panels_footprint(const OpCall& call, int threads);
std::int64_t panels_packed_bytes(const OpCall& call, int input);
void panels_pack(const OpCall& call, int input, std::byte* destination);
Status run_panels(const Invocation& call);

}  // namespace bantam::ops::matmul_blocks
