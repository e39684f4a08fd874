// Sampling of images at coordinates given by a tensor. Operands: 0 x f32 [N, D1..Dk, C], channels last, k = 1, 2 or 3;
// 1 grid f32 [N, O1..Ok, k], whose k coordinates count from the innermost axis outward (x, y, z). Result: y f32 [N,
// O1..Ok, C]. Coordinates -1 and 1 mean the centres (align_corners) or the outer edges of the first and last element.
// Beyond the image a coordinate is reflected or clamped to it, as `padding` says, or its elements count as zero; cubic
// clamps its four elements one by one. Nearest rounds halves to even; cubic uses the coefficient -0.75. What is not a
// number counts as far outside. Source: ONNX GridSample as ONNX Runtime and PyTorch compute it. Dense operands.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

enum class GridSampleMode : std::int32_t { kLinear = 0, kNearest, kCubic, kCount };
enum class GridSamplePadding : std::int32_t { kZeros = 0, kBorder, kReflection, kCount };

struct GridSampleParams {
  GridSampleMode mode = GridSampleMode::kLinear;
  GridSamplePadding padding = GridSamplePadding::kZeros;
  std::int32_t align_corners = 0;
};

extern const OpDef kGridSample;  // "grid_sample". Accuracy: consistent

}  // namespace bantam::ops
