// Resampling of any axes of a tensor with ONNX Resize's definitions. Operand 0: x (f32; nearest also i8, u8 and any
// type of 1, 2, 4 or 8 bytes); result: dims `sizes`. Axis i maps output coordinate to input coordinate by `coordinates`
// with scale[i] = given scale (output/input when the source gave sizes). Axes with equal size and scale 1 are
// untouched. With `antialias` (f32, linear and cubic, one axis per operator) the filter is stretched by 1/scale where
// that is more than one, so that every element counts; the scratch then holds one filter per thread.
// The result may be part of a larger one and be sampled from part of a larger operand (`first_output`, `first_input`),
// by coordinates that do not depend on sizes: half_pixel and asymmetric, without antialias. Results are then the bits
// of the whole, where the part of the operand has all elements that they are sampled from.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

enum class ResizeMode : std::int32_t { kNearest = 0, kLinear, kCubic, kCount };
enum class ResizeCoordinates : std::int32_t {
  kHalfPixel = 0,
  kAsymmetric,
  kAlignCorners,
  kPytorchHalfPixel,
  kHalfPixelSymmetric,
  kCropAndResize,
  kCount
};
enum class ResizeNearest : std::int32_t { kRoundPreferFloor = 0, kRoundPreferCeil, kFloor, kCeil, kCount };

struct ResizeParams {
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeNearest nearest = ResizeNearest::kRoundPreferFloor;
  IntList sizes{};  ///< every output dimension
  float scales[kMaxRank] = {1, 1, 1, 1, 1, 1, 1, 1};
  float roi_start[kMaxRank] = {};  ///< crop_and_resize: normalised, per axis
  float roi_end[kMaxRank] = {1, 1, 1, 1, 1, 1, 1, 1};
  float cubic_coefficient = -0.75F;
  std::int32_t exclude_outside = 0;
  float extrapolation = 0.0F;
  std::int32_t antialias = 0;
  IntList first_output{};  ///< where the result begins in the larger one; empty: it is the whole
  IntList first_input{};   ///< where the operand begins in the larger one; empty likewise
};

extern const OpDef kResize;  // "resize". Accuracy: bound 4e-06

}  // namespace bantam::ops
