// Two quantised convolutions of ONNX's arithmetic as one operator, as separable_conv2d: a depthwise one and the
// pointwise one that reads it, whose operand exists a few rows at a time, in scratch.
//
// Operands: 0 x [N,H,W,C]; 1 w [C*M,KH,KW,1]; 2 pointwise weights [OC,1,1,C*M]; 3 to 6 operands 2 to 5 of the first
// convolution; 7 to 10 of the second (conv2d_affine.h). Result: y [N,OH,OW,OC] of type `pointwise.to`. Results are
// those of the two operators one after the other, computed by the same kernels: equal to the bit. x and y may have
// strided rows. The SIMD kernels need constant weights.
#pragma once

#include "ops/nn/conv2d_affine/conv2d_affine.h"

namespace bantam::ops {

struct SeparableConv2dAffineParams {
  Conv2dAffineParams depthwise{};  ///< form.to is i8 or u8
  AffineForm pointwise{};
};

extern const OpDef kSeparableConv2dAffine;  // "separable_conv2d_affine". Accuracy: bound 1e-06

}  // namespace bantam::ops
