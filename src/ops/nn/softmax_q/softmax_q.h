// Quantised softmax along the innermost dimension, to the bit as TFLite's reference kernels. Exact. Operand 0: x.
//   i8, u8: fixed-point exp and reciprocal from gemmlowp (ops/fixed_point.h). Result scale is 1/256 with zero point
//   -128
//           for i8 (0 for u8), or i16 with 1/65536 offset by -32768.
//   i16:    exp and reciprocal by tables of 513 i16 entries (lookup_i16 in ops/fixed_point_i16.h): operand 1 is exp in
//           Q15 over [-10, 0], operand 2 is 1 / (1 + t) in Q15 over t in [0, 1]. Result i16 in Q15. Where tables or
//           sums are not those of these functions, the result is some defined value.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct SoftmaxQParams {
  ElementType32 to{};
  std::int32_t input_multiplier = 0;  ///< Q31 of beta * input_scale * 2^26 (TFLite PreprocessSoftmaxScaling);
                                      ///< i16: of beta * input_scale * 6553.5
  std::int32_t input_left_shift = 0;  ///< in [0, 30]; i16: may be negative down to -31
  std::int32_t diff_min =
      0;  ///< -CalculateInputRadius(5, left_shift, 31): below it a term counts as zero; unused for i16
};

extern const OpDef kSoftmaxQ;  // "softmax_q". Accuracy: exact

}  // namespace bantam::ops
