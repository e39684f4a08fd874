// Determinants. Operand 0: x [..., M, M], f32 or f64; result: y [...] of the same type. Gaussian elimination with
// partial pivoting in double. Exact up to that rounding; an empty matrix has determinant 1. Source: ONNX Det. Dense
// operands.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

extern const OpDef kDet;  // "det". Accuracy: consistent

}  // namespace bantam::ops
