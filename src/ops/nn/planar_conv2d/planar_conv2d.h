// Convolution of an image whose channels come first, with a result whose channels come last: conv2d without the
// transpose before it, where channels are few. Compilers make it (compiler/planar_images.h); no source format has it.
//
// Operands: 0 x [N,C,H,W]; 1 w [OC,KH,KW,C]; 2 bias [OC] (optional); all f32. Result: y [N,OH,OW,OC].
// Parameters are those of conv2d, with groups = 1; the members of its integer forms are not used. y is that of conv2d's
// f32 form on the transposed image. x and y may have strided rows. The SIMD kernel needs constant weights.
#pragma once

#include "ops/nn/conv2d/conv2d.h"

namespace bantam::ops {

extern const OpDef kPlanarConv2d;  // "planar_conv2d". Accuracy: bound 1e-05

}  // namespace bantam::ops
