// y = f(x), element by element. Operand 0: x of any shape. Result 0: same shape; same type, bool for is_nan/is_inf.
// Types: every function on f32 (and f16, bf16, f64 in the reference); abs, neg, sign, relu, clip, square, identity and
// bit_not on integers; not, identity on bool. Integer neg and abs wrap. Accepts strided operands.
#pragma once

#include "ops/elementwise/unary/function.h"
#include "ops/op.h"

namespace bantam::ops {

struct UnaryParams {
  UnaryFunction function = UnaryFunction::kIdentity;
  float a = 0.0F;
  float b = 0.0F;
};

extern const OpDef kUnary;  // "unary". Accuracy: bound 1e-06

}  // namespace bantam::ops
