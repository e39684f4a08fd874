// Arithmetic of two quantised operands with broadcasting (NumPy), as ONNX's DequantizeLinear, operator and
// QuantizeLinear compute it, to the bit: with a = a_scale * (qa - a_zero_point) and b likewise, in f32,
//   y = clamp(round_half_even(f(a, b) / y_scale) + y_zero_point, minimum, maximum).
// Operands 0, 1 and the result: i8, u8, i16 or u16, all the same; or operand 1 is f32, numbers b themselves. Functions:
// add, sub, mul, div, min, max, prelu; what is not a number (0 / 0) counts as 0. Scales are finite and positive, zero
// points and the range lie within the type.
// Exact on every target. Accepts strided operands.
#pragma once

#include "ops/elementwise/binary/binary.h"
#include "ops/op.h"

namespace bantam::ops {

struct BinaryAffineParams {
  BinaryFunction function = BinaryFunction::kAdd;
  float a_scale = 1.0F;
  std::int32_t a_zero_point = 0;
  float b_scale = 1.0F;  ///< means nothing where operand 1 is f32, nor does its zero point
  std::int32_t b_zero_point = 0;
  float y_scale = 1.0F;
  std::int32_t y_zero_point = 0;
  std::int32_t minimum = -128;
  std::int32_t maximum = 127;
};

extern const OpDef kBinaryAffine;  // "binary_affine". Accuracy: consistent

}  // namespace bantam::ops
