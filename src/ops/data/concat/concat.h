// Joins operands 0..n-1 (same type, same rank >= 1, same dimensions but for `axis`). Any type. Each operand can be
// produced in place inside the result. Accepts strided operands.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct ConcatParams {
  std::int32_t axis = 0;  ///< normalised
};

extern const OpDef kConcat;  // "concat". Accuracy: exact

}  // namespace bantam::ops
