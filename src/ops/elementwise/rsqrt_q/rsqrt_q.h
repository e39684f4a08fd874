// 1 / sqrt(x) of quantised numbers: y = saturate(1 / sqrt(x - input_zero_point) * multiplier * 2^(shift - 31) +
// output_zero_point), in fixed point, to the bit as TFLite's RSQRT; zero gives the type's largest number. Operand 0: i8
// or i16; result: the same type and shape. A number below zero is reported while running (kOutOfRange). Exact. Operands
// are dense.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct RsqrtQParams {
  std::int32_t input_zero_point = 0;
  std::int32_t output_zero_point = 0;
  std::int32_t multiplier = 0;  ///< Q31, not negative
  std::int32_t shift = 0;       ///< in [-11, 30]
};

extern const OpDef kRsqrtQ;  // "rsqrt_q". Accuracy: exact

}  // namespace bantam::ops
