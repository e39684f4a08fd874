// Square roots rounded to nearest and shifted right. Operand 0: u64, any shape; operand 1: the shift, one i32 of 0..31,
// else kOutOfRange while running. Result: u32, operand 0's shape. Exact, as TFLite Micro's SignalFilterBankSquareRoot
// (operands below 2^32 have roots of 16 bits, which saturate). Operands are dense.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

extern const OpDef kRoundedRoot;  // "rounded_root". Accuracy: exact

}  // namespace bantam::ops
