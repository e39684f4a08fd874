// Transposed convolution of quantised channels-last images, in the arithmetic of ONNX's quantised operators.
//
// Operands: 0 x i8 or u8 [N,H,W,C]; 1 w i8 or u8 [OC,KH,KW,C/groups]; 2 to 5 as in ops/common/affine_form.h, which
// defines the arithmetic (N there is OC here). Result: y [N,OH,OW,OC] of type `form.to`; what meets what, and sizes, as
// in conv_transpose2d. Outputs that no tap reaches have the sum 0. Integer results are exact; f32 results differ
// between targets by nothing but the fused activation's own accuracy. The SIMD kernels need constant weights and dense
// operands. ONNX has no operator of its own for it: it is what DequantizeLinear, ConvTranspose, QuantizeLinear mean.
#pragma once

#include "ops/common/affine_form.h"

namespace bantam::ops {

struct ConvTranspose2dAffineParams {
  std::int32_t stride_h = 1;
  std::int32_t stride_w = 1;
  std::int32_t dilation_h = 1;
  std::int32_t dilation_w = 1;
  std::int32_t pad_top = 0;
  std::int32_t pad_left = 0;
  std::int32_t pad_bottom = 0;
  std::int32_t pad_right = 0;
  std::int32_t output_pad_h = 0;
  std::int32_t output_pad_w = 0;
  std::int32_t groups = 1;
  AffineForm form{};
};

extern const OpDef kConvTranspose2dAffine;  // "conv_transpose2d_affine". Accuracy: bound 1e-06

}  // namespace bantam::ops
