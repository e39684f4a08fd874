// Convolution of channels-last images with groups (depthwise has its own operator).
//
// Operands: 0 x [N,H,W,C]; 1 w [OC,KH,KW,C/groups]; 2 bias [OC] (optional); 3, 4: see the quantised forms.
// Result: y [N,OH,OW,OC] with OH = (H + pad_top + pad_bottom - dilation_h (KH-1) - 1) / stride_h + 1, floored; likewise
// OW. A result without elements is allowed; a kernel larger than the padded image is not. 1-D convolutions have H = 1.
//
// Forms, by element type:
//   f32:    x, w, bias f32; y = activation(sum + bias). 3x3 kernels with stride 1 and many channels are computed in
//           transformed tiles, with errors of up to 2e-5 of the largest result at 512 channels, instead of 2e-6, and
//           a value that is not finite spoils the 4x4 results of its tiles.
//   int8:   x, w, y i8; bias i32; 3 multiplier i32 [OC] (Q31); 4 shift i32 [OC]. y = clamp(multiply_by_quantized_
//           multiplier(sum((x - input_zero_point) * w) + bias, multiplier, shift) + output_zero_point, minimum,
//           maximum): TFLite's reference arithmetic, exact (ops/fixed_point.h). Weights are symmetric. Padding counts
//           as input_zero_point, i.e. contributes nothing.
//   int16:  x, y i16; w i8; bias i64 or i32; 3, 4 as in int8; no zero points. y = clamp(scaled(sum(x * w) + bias),
//           minimum, maximum): in 64 bits, where the multiplier is reduced to 15 bits, or, with a bias of i32, in 32
//           bits as in int8. TFLite's arithmetic for int16 activations, exact.
//   hybrid: x, y, bias f32; w i8; 3 scale f32 [1] or [OC]. Each batch item of x is quantised at run time, symmetric
//           over the whole item: s = max|x| / 127, q = round_half_away(x / s) in [-127, 127]; y = activation(sum(q w) *
//           s * scale + bias), TFLite's dynamic-range arithmetic.
// x and y may have strided rows. Sums of integers wrap; shifts outside [-31, 30] (in 64 bits [-31, 14]) count as the
// nearest bound; zero points and the range must be values of the element type. SIMD kernels want i8 weights constant.
#pragma once

#include "ops/elementwise/unary/function.h"
#include "ops/op.h"

namespace bantam::ops {

struct Conv2dParams {
  std::int32_t stride_h = 1;
  std::int32_t stride_w = 1;
  std::int32_t dilation_h = 1;
  std::int32_t dilation_w = 1;
  std::int32_t pad_top = 0;
  std::int32_t pad_left = 0;
  std::int32_t pad_bottom = 0;
  std::int32_t pad_right = 0;
  std::int32_t groups = 1;
  Activation activation{};            ///< float forms
  std::int32_t input_zero_point = 0;  ///< integer forms, as the four below
  std::int32_t output_zero_point = 0;
  std::int32_t minimum = -128;
  std::int32_t maximum = 127;
};

extern const OpDef kConv2d;  // "conv2d". Accuracy: bound 3e-05

}  // namespace bantam::ops
