// Batched product of quantised matrices as ONNX defines it; also fully connected layers.
//
// Operands: 0 a i8 or u8 [..., M, K]; 1 b i8 or u8 [..., K, N] ([..., N, K] with transpose_b); leading dimensions
// broadcast (NumPy); both have rank >= 2. 2 to 5 as in ops/common/affine_form.h, which defines the arithmetic; operand
// 4 may have one zero point per row, [M]. Result: y [..., M, N] of type `form.to`. K = 0 gives sums of 0. Accepts
// strided operands and results, except a strided constant b in SIMD. Integer results are exact; f32 results differ
// between targets by nothing but the fused activation's own accuracy. Source: ONNX MatMulInteger and QLinearMatMul.
#pragma once

#include "ops/common/affine_form.h"

namespace bantam::ops {

struct MatmulAffineParams {
  std::int32_t transpose_b = 0;
  AffineForm form{};
};

extern const OpDef kMatmulAffine;  // "matmul_affine". Accuracy: bound 1e-06

}  // namespace bantam::ops
