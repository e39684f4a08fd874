// result.dims[i] = operand.dims[perm[i]]. Any type. A view (reshape) when only dimensions of size 1 move. Accepts a
// strided operand.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct TransposeParams {
  IntList perm{};
};

extern const OpDef kTranspose;  // "transpose". Accuracy: exact

}  // namespace bantam::ops
