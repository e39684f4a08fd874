// Logarithm of softmax over the last dimension of int8, in fixed point, to the bit as TFLite's LOG_SOFTMAX; the result
// has scale 1/16 and zero point 127. Operand 0: i8, rank >= 1; result: the same shape. Exact. Operands are dense. A
// difference to the row's maximum reaches Q5 by multiply_by_quantized_multiplier(difference, input_multiplier,
// input_left_shift), and returns from there by reverse_multiplier and reverse_shift; below diff_min it counts for
// nothing.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct LogSoftmaxQParams {
  std::int32_t input_multiplier = 0;    ///< Q31, not negative
  std::int32_t input_left_shift = 0;    ///< 0..30
  std::int32_t reverse_multiplier = 0;  ///< Q31, not negative
  std::int32_t reverse_shift = 0;       ///< -31..30, usually negative
  std::int32_t diff_min = 0;            ///< not positive
};

extern const OpDef kLogSoftmaxQ;  // "log_softmax_q". Accuracy: exact

}  // namespace bantam::ops
