// Operand 0 broadcast (NumPy rules) to `shape`, which lists every dimension of the result. Any type.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct ExpandParams {
  IntList shape{};
};

extern const OpDef kExpand;  // "expand". Accuracy: exact

}  // namespace bantam::ops
