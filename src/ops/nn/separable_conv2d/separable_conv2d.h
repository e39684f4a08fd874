// A depthwise convolution and the pointwise convolution that reads it, as one operator: the result of the first exists
// a few rows at a time, in scratch. Compilers make it (compiler/fuse_separable.h); no source format has it.
//
// Operands: 0 x [N,H,W,C]; 1 w [KH,KW,C*M]; 2 pointwise weights [OC,1,1,C*M]; of the depthwise convolution 3 bias,
// 4 multiplier, 5 shift, each [C*M]; of the pointwise one 6 bias, 7 multiplier, 8 shift, each [OC]: present where
// conv2d has them in that form. Result: y [N,OH,OW,OC].
// Parameters: `depthwise` is what depthwise_conv2d has, its output_zero_point also the input_zero_point of the
// pointwise convolution; the others are those of that convolution. Forms f32, int8 and int16 (conv2d.h), both
// convolutions in the same. Results are those of the two operators one after the other, computed by the same kernels:
// equal to the bit. x and y may have strided rows. The SIMD kernels need constant pointwise weights.
#pragma once

#include "ops/nn/conv2d/conv2d.h"

namespace bantam::ops {

struct SeparableConv2dParams {
  Conv2dParams depthwise{};
  Activation activation{};             ///< float form
  std::int32_t output_zero_point = 0;  ///< integer forms, as the two below
  std::int32_t minimum = -128;
  std::int32_t maximum = 127;
};

extern const OpDef kSeparableConv2d;  // "separable_conv2d". Accuracy: bound 1e-05

}  // namespace bantam::ops
