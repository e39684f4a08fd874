// Convolution of quantised channels-last images as ONNX defines it, with groups (depthwise too).
//
// Operands: 0 x i8 or u8 [N,H,W,C]; 1 w i8 or u8 [OC,KH,KW,C/groups]; 2 to 5 as in ops/common/affine_form.h, which
// defines the arithmetic (N there is OC here). Result: y [N,OH,OW,OC] of type `form.to`; sizes as in conv2d. Padding
// counts as the zero point of x, i.e. contributes nothing. x and y may have strided rows. Integer results are exact;
// f32 results differ between targets by nothing but the fused activation's own accuracy. The SIMD kernels need constant
// weights. Source of the arithmetic: ONNX QLinearConv and ConvInteger.
#pragma once

#include "ops/common/affine_form.h"

namespace bantam::ops {

struct Conv2dAffineParams {
  std::int32_t stride_h = 1;
  std::int32_t stride_w = 1;
  std::int32_t dilation_h = 1;
  std::int32_t dilation_w = 1;
  std::int32_t pad_top = 0;
  std::int32_t pad_left = 0;
  std::int32_t pad_bottom = 0;
  std::int32_t pad_right = 0;
  std::int32_t groups = 1;
  AffineForm form{};
};

extern const OpDef kConv2dAffine;  // "conv2d_affine". Accuracy: bound 1e-06

}  // namespace bantam::ops
