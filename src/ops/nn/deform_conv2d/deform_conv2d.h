// Deformable convolution of channels-last images: every tap of every window samples the image at its own place.
// Operands: 0 x f32 [N,H,W,C]; 1 w f32 [OC,KH,KW,C/groups]; 2 offsets f32 [N,OH,OW, G*KH*KW*2] with (dy, dx) per tap,
// G = offset_groups; 3 bias f32 [OC] (optional); 4 mask f32 [N,OH,OW, G*KH*KW], factors of the samples (optional).
// Result: y f32 [N,OH,OW,OC], OH and OW as in conv2d. Samples are interpolated between four elements, those outside the
// image being zero; channel c belongs to offset group c / (C / G). Offsets that are not numbers sample zeros.
// Source: ONNX DeformConv (Dai et al. 2017; Zhu et al. 2019). Dense operands.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct DeformConv2dParams {
  std::int32_t stride_h = 1;
  std::int32_t stride_w = 1;
  std::int32_t dilation_h = 1;
  std::int32_t dilation_w = 1;
  std::int32_t pad_top = 0;
  std::int32_t pad_left = 0;
  std::int32_t pad_bottom = 0;
  std::int32_t pad_right = 0;
  std::int32_t groups = 1;
  std::int32_t offset_groups = 1;
};

extern const OpDef kDeformConv2d;  // "deform_conv2d". Accuracy: bound 1e-05

}  // namespace bantam::ops
