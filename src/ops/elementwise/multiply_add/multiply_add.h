// y = x * a + b with NumPy broadcasting of all three, then an optional fused activation. f32. Products and sums are
// rounded one by one: to the bit what two `binary` give. Accepts strided operands.
#pragma once

#include "ops/elementwise/unary/function.h"
#include "ops/op.h"

namespace bantam::ops {

struct MultiplyAddParams {
  Activation activation{};
};

extern const OpDef kMultiplyAdd;  // "multiply_add". Accuracy: bound 1e-06

}  // namespace bantam::ops
