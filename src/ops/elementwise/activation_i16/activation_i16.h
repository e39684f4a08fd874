// y = logistic(x) or tanh(x) of int16 numbers, to the bit as TFLite's reference kernels for int16 activations
// (ops/fixed_point_i16.h). Operand 0: x, i16, any shape. The result is i16 in Q15: scale 1/32768, zero point 0. Exact.
// Accepts strided operands.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

enum class ActivationI16Function : std::int32_t { kLogistic = 0, kTanh, kCount };

inline constexpr std::string_view kActivationI16FunctionNames[] = {"logistic", "tanh"};

struct ActivationI16Params {
  ActivationI16Function function = ActivationI16Function::kLogistic;
  std::int32_t multiplier = 3;   ///< (x * multiplier) >> right_shift, rounded, is in steps of 1 / (3 * 4096)
  std::int32_t right_shift = 0;  ///< in [0, 31]
};

extern const OpDef kActivationI16;  // "activation_i16". Accuracy: exact

}  // namespace bantam::ops
