// Batched product of two quantised matrices that are both computed while running, to the bit as TFLite's BATCH_MATMUL.
// Operands: 0 a [..., M, K] ([..., K, M] with transpose_a); 1 b [..., K, N] ([..., N, K] with transpose_b); both i8 or
// both i16; leading dimensions broadcast (NumPy). Result [..., M, N], the same type:
//   i8:  saturate(mbqm(sum((a - a_zero_point) * (b - b_zero_point)), multiplier, shift) + output_zero_point)
//   i16: zero points are 0; the sum has 64 bits and is scaled by multiply_wide_by_quantized_multiplier.
// Exact (ops/fixed_point.h; 32-bit sums wrap). Operands are dense. A constant b is faster in `matmul`.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct BatchMatmulQParams {
  std::int32_t transpose_a = 0;
  std::int32_t transpose_b = 0;
  std::int32_t a_zero_point = 0;
  std::int32_t b_zero_point = 0;
  std::int32_t output_zero_point = 0;
  std::int32_t multiplier = 0;  ///< Q31, not negative
  std::int32_t shift = 0;       ///< -31..30, for i16 -31..14
};

extern const OpDef kBatchMatmulQ;  // "batch_matmul_q". Accuracy: exact

}  // namespace bantam::ops
