// start, start + delta, ... below (above, for negative delta) limit. Operands 0 start, 1 limit, 2 delta: scalars of the
// same type (f32, f64, i16, i32, i64), constant at inference since they set the shape. Result [max(ceil((limit -
// start) / delta), 0)].
#pragma once

#include "ops/op.h"

namespace bantam::ops {

extern const OpDef kRange;  // "range". Accuracy: consistent

}  // namespace bantam::ops
