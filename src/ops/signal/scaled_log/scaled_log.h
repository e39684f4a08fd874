// Logarithms of band levels: y = min(scale * ln(x << shift), 32767), and 0 where x << shift is 0 or 1. Operand 0: u32,
// any shape; result: i16, the same shape. Exact, as TFLite Micro's SignalFilterBankLog; the logarithm is that of
// signal/fixed_point_levels.h. Operands are dense.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct ScaledLogParams {
  std::int32_t scale = 1;  ///< not negative
  std::int32_t shift = 0;  ///< 0..31
};

extern const OpDef kScaledLog;  // "scaled_log". Accuracy: exact

}  // namespace bantam::ops
