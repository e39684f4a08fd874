// The same elements in another shape: a view of a dense operand. Operand 0: any type; result: dims `shape`, which lists
// every dimension and has as many elements as the operand.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct ReshapeParams {
  IntList shape{};
};

extern const OpDef kReshape;  // "reshape". Accuracy: exact

}  // namespace bantam::ops
