// Linear or cubic resampling of quantised numbers, on a grid of its own. Numbers are interpolated in f32, in steps of
// the operand's grid from its zero point, and rescaled once. With the taps of resize (nn/resize/sampling.h) along its
// resampled axes, of which `last` is the innermost,
//   b(t) = SUM over the taps s of the axes before `last` of weight(s) * (x(s, t) - x_zero_point)
//   r    = SUM over the taps t of axis `last` of weight(t) * b(t)
//   y    = clamp(round_half_even(r * (x_scale / y_scale)) + y_zero_point, minimum, maximum)
// where the weight of several taps is the product of theirs in the order of axes, sums begin with the first product and
// go on in the order of taps, axis by axis, and each product and each sum is rounded; what is not a number counts as 0.
// Operand 0: x i8 or u8, of rank 1 or more; result: type `to`, i8 or u8, dims `resize.sizes`. Scales are finite and
// positive, zero points and the range lie within their types. At most kMostResampledAxes; not with antialias or
// crop_and_resize. Exact on every target. Accepts a dense operand.
#pragma once

#include "ops/nn/resize/resize.h"
#include "ops/op.h"

namespace bantam::ops {

inline constexpr int kMostResampledAxes = 3;

struct ResizeAffineParams {
  ResizeParams resize{.mode = ResizeMode::kLinear};
  float x_scale = 1.0F;
  std::int32_t x_zero_point = 0;
  ElementType32 to{ElementType::kI8};
  float y_scale = 1.0F;
  std::int32_t y_zero_point = 0;
  std::int32_t minimum = -128;
  std::int32_t maximum = 127;
};

extern const OpDef kResizeAffine;  // "resize_affine". Accuracy: consistent

}  // namespace bantam::ops
