// result = operand with axis replaced by the shape of the indices: slices picked along an axis. Operands: 0 any type; 1
// indices i32 or i64, any shape, -dim <= index < dim (else a data-dependent fault, kOutOfRange). A single constant
// index is a view (output_view). With batch_dims > 0 the first batch_dims dimensions of both operands agree.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct GatherParams {
  std::int32_t axis = 0;  ///< normalised
  std::int32_t batch_dims = 0;
};

extern const OpDef kGather;  // "gather". Accuracy: exact

}  // namespace bantam::ops
