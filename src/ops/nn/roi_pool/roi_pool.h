// Pools regions of images to one size. Operands: 0 x f32 [N,H,W,C], channels last; 1 regions f32 [R,4]: x1, y1, x2, y2
// in units that `spatial_scale` turns into elements of x; 2 images i32 or i64 [R]: the image of each region. Result: y
// f32 [R, output_h, output_w, C].
//   average, max: ONNX RoiAlign. Each bin is the mean of `samples` x `samples` points (0: as many as the bin has
//     elements, rounded up) interpolated between four elements; max takes the largest of the four weighted elements of
//     all points, as ONNX Runtime does. `half_pixel` moves regions by half an element. Points more than one element
//     outside are zero.
//   rounded_max: ONNX MaxRoiPool. Corners are rounded to elements, bins to whole elements, which may overlap; an empty
//     bin is zero.
// An image outside x is a data-dependent fault. Work per bin is bounded by the image's size or `samples`, whatever the
// regions hold; what is not a number is an empty region. Exact within float rounding. Dense operands.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

enum class RoiPoolMode : std::int32_t { kAverage = 0, kMax, kRoundedMax, kCount };

struct RoiPoolParams {
  RoiPoolMode mode = RoiPoolMode::kAverage;
  std::int32_t output_h = 1;
  std::int32_t output_w = 1;
  std::int32_t samples = 0;  ///< per bin and axis, at most 256
  std::int32_t half_pixel = 1;
  float spatial_scale = 1.0F;
};

extern const OpDef kRoiPool;  // "roi_pool". Accuracy: consistent

}  // namespace bantam::ops
