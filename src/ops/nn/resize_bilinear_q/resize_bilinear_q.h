// Bilinear resampling of int8 images in integers: coordinates and weights have ten fraction bits, to the bit as
// TFLite's RESIZE_BILINEAR. Operand 0: x i8 [N,H,W,C], H and W > 0 unless the result is empty; result: y [N, height,
// width, C]. A result's coordinate i lies at i * scale in the operand, with half_pixel at i * scale + scale / 2 - 512,
// all in 1/1024 of a pixel; neighbours are clamped to the image. Exact. Operands are dense.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct ResizeBilinearQParams {
  std::int32_t height = 0;
  std::int32_t width = 0;
  std::int32_t scale_h = 0;  ///< 1/1024 of an operand's row per row of the result, not negative
  std::int32_t scale_w = 0;
  std::int32_t half_pixel = 0;
};

extern const OpDef kResizeBilinearQ;  // "resize_bilinear_q". Accuracy: exact

}  // namespace bantam::ops
