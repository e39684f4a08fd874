// Sum or mean of quantised numbers over a set of axes, on a grid of its own: sums of integers are exact and rescaled
// once, in f32, as ONNX Runtime computes QLinearGlobalAveragePool. With n elements to a result,
//   factor = x_scale / y_scale for sums, x_scale / (y_scale * float(n)) for means
//   y = clamp(round_half_even(float(SUM (x - x_zero_point)) * factor) + y_zero_point, minimum, maximum)
// where what is not a number, such as the mean of no elements, counts as 0. Operand 0: i8 or u8; result: type `to`, i8
// or u8, reduced axes removed or kept as 1. Empty `axes` reduces nothing. Scales are finite and positive, zero points
// and the range lie within their types. Exact on every target. Accepts a strided operand.
#pragma once

#include "ops/op.h"
#include "ops/reduce/reduce/reduce.h"

namespace bantam::ops {

struct ReduceAffineParams {
  ReduceFunction function = ReduceFunction::kMean;  ///< kSum or kMean
  IntList axes{};                                   ///< normalised, ascending
  std::int32_t keep_dims = 1;
  float x_scale = 1.0F;
  std::int32_t x_zero_point = 0;
  ElementType32 to{ElementType::kI8};
  float y_scale = 1.0F;
  std::int32_t y_zero_point = 0;
  std::int32_t minimum = -128;
  std::int32_t maximum = 127;
};

extern const OpDef kReduceAffine;  // "reduce_affine". Accuracy: consistent

}  // namespace bantam::ops
