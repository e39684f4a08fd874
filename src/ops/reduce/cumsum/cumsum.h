// Running sum along an axis. Operand 0: f32, f64, i32, i64; result: same shape and type.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct CumsumParams {
  std::int32_t axis = 0;
  std::int32_t exclusive = 0;
  std::int32_t reverse = 0;
};

extern const OpDef kCumsum;  // "cumsum". Accuracy: consistent

}  // namespace bantam::ops
