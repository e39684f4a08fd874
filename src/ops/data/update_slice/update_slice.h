// A tensor with a part of it replaced, at a place known while running. Operands: 0 x, any type of whole bytes; 1
// update, the same type and rank, no dimension larger than x's; 2 the place of its first element, i32 or i64 [rank].
// Result: x's shape. Every start is moved to where the update lies inside, as TFLite's DYNAMIC_UPDATE_SLICE does it.
// Exact. Operands are dense; the result may take x's place, and then only the update is moved.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

extern const OpDef kUpdateSlice;  // "update_slice". Accuracy: exact

}  // namespace bantam::ops
