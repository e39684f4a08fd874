// Quantised softmax along the innermost dimension, to the bit as TFLite's reference kernel for int8 input and int8 or
// int16 output (input i8 or u8; fixed-point exp and reciprocal from gemmlowp: ops/fixed_point.h). Result scale is
// 1/256 with zero point -128 for i8 (0 for u8), 1/32768 offset by -32768 for i16. Exact.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct SoftmaxQParams {
  ElementType32 to{};
  std::int32_t input_multiplier = 0;  ///< Q31 of beta * input_scale * 2^26 (TFLite PreprocessSoftmaxScaling)
  std::int32_t input_left_shift = 0;
  std::int32_t diff_min = 0;  ///< -CalculateInputRadius(5, left_shift, 31): below it a term counts as zero
};

extern const OpDef kSoftmaxQ;  // "softmax_q"

}  // namespace bantam::ops
