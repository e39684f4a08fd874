// Transposed convolution, channels last. Operands: 0 x [N,H,W,C]; 1 w [OC,KH,KW,C/groups]: output channel first, as in
// conv2d, where output channel o belongs to group o / (OC / groups); 2 bias [OC] (optional); 3, 4 as in conv2d. Result
// y [N,OH,OW,OC] with OH = stride_h (H-1) + dilation_h (KH-1) + 1 + output_pad_h - pad_top - pad_bottom. y[n, s*h +
// d*kh - pad, ...] accumulates x[n, h, ...] * w[..., kh, ...]. Forms: f32, int8 and int16 with the arithmetic of
// conv2d.h; the integer ones are exact.
#pragma once

#include "ops/elementwise/unary/function.h"
#include "ops/op.h"

namespace bantam::ops {

struct ConvTranspose2dParams {
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
  Activation activation{};            ///< float form
  std::int32_t input_zero_point = 0;  ///< integer forms, as the four below
  std::int32_t output_zero_point = 0;
  std::int32_t minimum = -128;
  std::int32_t maximum = 127;
};

extern const OpDef kConvTranspose2d;  // "conv_transpose2d". Accuracy: bound 1e-05

}  // namespace bantam::ops
