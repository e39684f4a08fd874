// y = table[x]: any function of one 8-bit argument. Operand 0: x, i8 or u8, any shape; operand 1: constant table of 256
// entries (i8 or u8, the result's type), indexed by the bit pattern of x as u8 (so i8 -1 is entry 255). Importers fill
// the table with the source format's exact arithmetic. Exact. Accepts strided operands.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

extern const OpDef kLookup8;  // "lookup8". Accuracy: exact

}  // namespace bantam::ops
