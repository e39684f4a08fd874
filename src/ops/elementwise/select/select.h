// y = condition ? a : b with NumPy broadcasting of all three. Operand 0: bool; 1 and 2: same type, any. Accepts strided
// operands.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

extern const OpDef kSelect;  // "select". Accuracy: exact

}  // namespace bantam::ops
