// The same tensor in other memory: what passes insert where a value must exist twice (an input that is also an output,
// a state that is read after it was written). Any type. Accepts strided operands and results.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

extern const OpDef kCopy;  // "copy". Accuracy: exact

}  // namespace bantam::ops
