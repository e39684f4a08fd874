// Converts element types. Operand 0: any shape, any type but i4; result: same shape. Float to integer truncates toward
// zero and saturates (NaN gives 0); integer to narrower integer wraps; anything to bool is x != 0; float to f16/bf16
// rounds half to even.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct CastParams {
  ElementType32 to{};
};

extern const OpDef kCast;  // "cast". Accuracy: exact

}  // namespace bantam::ops
