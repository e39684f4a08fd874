// Rows of int8 divided by their length: y = saturate(128 (x - zero_point) / sqrt(sum over the last dimension of (x -
// zero_point)^2)), in fixed point, to the bit as TFLite's L2_NORMALIZATION; the result has scale 1/128 and zero point
// 0. Operand 0: i8, rank >= 1, last dimension below 2^15; result: the same shape. Exact. Operands are dense.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct L2NormalizeQParams {
  std::int32_t zero_point = 0;  ///< of the operand, -128..127
};

extern const OpDef kL2NormalizeQ;  // "l2_normalize_q". Accuracy: exact

}  // namespace bantam::ops
