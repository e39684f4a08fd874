// The scale and zero point with which the numbers of a tensor, and zero, fill the range of u8. Operand 0: x, f32, any
// shape. Results, both scalars: 0 scale f32, (max(x, 0) - min(x, 0)) / 255, but 1 where all are zero; 1 zero_point u8,
// -min(x, 0) / scale, rounded half to even. Numbers that are not are left out; where an infinity makes the quotient
// one, the zero point is 0. Exact. Source: ONNX DynamicQuantizeLinear, with ONNX Runtime's scale of zeros.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

extern const OpDef kQuantizationRange;  // "quantization_range". Accuracy: exact

}  // namespace bantam::ops
