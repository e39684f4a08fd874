// result[i][j][k] = operand[i][index[i][j][k]][k] (axis 1 shown). Operands: 0 any type; 1 indices i32 or i64 of the
// same rank, no dimension but `axis` larger than operand 0's. Negative indices count from the end.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct GatherElementsParams {
  std::int32_t axis = 0;
};

extern const OpDef kGatherElements;  // "gather_elements". Accuracy: exact

}  // namespace bantam::ops
