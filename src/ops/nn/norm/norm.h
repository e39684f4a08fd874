// Normalisation over a set of axes: y = (x - mean) / sqrt(variance + epsilon) * scale + bias, or with `rms`:
// y = x / sqrt(mean(x^2) + epsilon) * scale + bias. Layer, instance and group normalisation are this with other axes
// (group normalisation after a reshape). Operands: 0 x f32 or f64; 1 scale, 2 bias of the same type: both optional,
// broadcastable to x.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct NormParams {
  IntList axes{};  ///< normalised, ascending
  float epsilon = 1e-5F;
  std::int32_t rms = 0;
};

extern const OpDef kNorm;  // "norm". Accuracy: bound 2e-05

}  // namespace bantam::ops
