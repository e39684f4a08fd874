// Softmax or log-softmax along one axis. Operand 0: f32 or f64, rank >= 1; result: same shape. Sub-maximum stabilised;
// a row of all -inf gives NaN as in IEEE arithmetic. In place allowed.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct SoftmaxParams {
  std::int32_t axis = -1;  ///< normalised by importers; negative counts from the end
  std::int32_t log = 0;    ///< 1: log-softmax
};

extern const OpDef kSoftmax;  // "softmax". Accuracy: bound 4e-06

}  // namespace bantam::ops
