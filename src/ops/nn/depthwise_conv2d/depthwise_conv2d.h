// Depthwise convolution: output channel c * M + m reads input channel c only (M = channel multiplier = OC / C).
//
// Operands: 0 x [N,H,W,C]; 1 w [KH,KW,C*M]; 2 bias [C*M] (optional); 3, 4 as in conv2d. Result: y [N,OH,OW,C*M].
// Parameters, forms (f32, int8, hybrid) and arithmetic are those of conv2d (groups is ignored and must be 1).
#pragma once

#include "ops/nn/conv2d/conv2d.h"

namespace bantam::ops {

extern const OpDef kDepthwiseConv2d;  // "depthwise_conv2d", parameters: Conv2dParams. Accuracy: bound 1e-05

}  // namespace bantam::ops
