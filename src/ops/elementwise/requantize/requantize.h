// Integer to integer rescaling as TFLite's QUANTIZE does it: y = saturate(multiply_by_quantized_multiplier(x -
// input_zero_point, multiplier, shift) + output_zero_point). Operand 0: i8, u8, i16, i32; result type `to`. With
// `leaky` what lies below input_zero_point has a scale of its own, which may be negative, as TFLite's LEAKY_RELU has
// it. Fixed-point arithmetic: see ops/fixed_point.h. Exact. Accepts strided operands.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct RequantizeParams {
  ElementType32 to{};
  std::int32_t input_zero_point = 0;
  std::int32_t output_zero_point = 0;
  std::int32_t multiplier = 0;  ///< Q31
  std::int32_t shift = 0;       ///< left when positive, in [-31, 30]
  std::int32_t leaky = 0;
  std::int32_t negative_multiplier = 0;  ///< below zero, the result's sign is changed
  std::int32_t negative_shift = 0;
};

extern const OpDef kRequantize;  // "requantize". Accuracy: exact

}  // namespace bantam::ops
