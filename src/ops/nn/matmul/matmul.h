// Batched matrix product with optional bias and fused activation; also fully connected layers.
//
// Operands: 0 a [..., M, K] ([..., K, M] with transpose_a); 1 b [..., K, N] ([..., N, K] with transpose_b); leading
// dimensions broadcast (NumPy); both have rank >= 2 (importers reshape vectors). 2 bias [N] (optional). 3, 4 as below.
// Result: y [..., M, N].
//
// Forms, by element type:
//   f32:    y = activation(a b + bias). K = 0 gives the bias alone.
//   int8:   a, y i8; b i8 [N,K] constant with transpose_b; bias i32; 3 multiplier i32 [N]; 4 shift i32 [N].
//           y = clamp(mbqm(sum((a - input_zero_point) * (b - weights_zero_point)) + bias) + output_zero_point, minimum,
//           maximum), TFLite's reference arithmetic, exact (ops/fixed_point.h).
//   int16:  a, y i16; b i8 [N,K] constant with transpose_b; bias i64 or i32; 3, 4 as in int8; no zero points. y =
//           clamp(scaled(sum(a * b) + bias), minimum, maximum): in 64 bits, where the multiplier is reduced to 15 bits,
//           or, with a bias of i32, in 32 bits as in int8. TFLite's arithmetic for int16 activations, exact.
//   hybrid: a, y, bias f32; b i8 [N,K] constant with transpose_b; 3 scale f32 [1] or [N]. Each row of a is quantised at
//           run time, symmetric: s = max|row| / 127, q = round_half_away(x / s); y = activation(sum(q b) * s * scale +
//           bias), TFLite's dynamic-range arithmetic. With `asymmetric`, q - zero_point stands for q, over the range of
//           the row and zero (quantize_asymmetric in ops/common/linear_form.h).
//   plain:  a, b, bias, y of one type among f64, i32, u32, i64, u64; y = a b + bias, integers wrap. No activation.
// The quantised forms do not transpose a. Accepts strided operands and results, except a strided constant b in SIMD.
#pragma once

#include "ops/elementwise/unary/function.h"
#include "ops/op.h"

namespace bantam::ops {

struct MatmulParams {
  std::int32_t transpose_a = 0;
  std::int32_t transpose_b = 0;
  Activation activation{};
  std::int32_t input_zero_point = 0;  ///< integer forms, as the four below
  std::int32_t weights_zero_point = 0;
  std::int32_t output_zero_point = 0;
  std::int32_t minimum = -128;
  std::int32_t maximum = 127;
  std::int32_t asymmetric = 0;  ///< hybrid form
};

extern const OpDef kMatmul;  // "matmul". Accuracy: bound 1e-05

}  // namespace bantam::ops
