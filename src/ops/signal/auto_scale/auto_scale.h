// 16-bit samples shifted left as far as none overflows, before a fixed-point transform. Operand 0: i16, any shape;
// result 0: the same shape; result 1: the shift, an i32 scalar. Exact, as TFLite Micro's SignalFftAutoScale, whose
// search for the largest magnitude forgets what came before a sample of -32768. Operands are dense.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

extern const OpDef kAutoScale;  // "auto_scale". Accuracy: exact

}  // namespace bantam::ops
