// y = (x - zero_point) * scale in f32. Operands: 0 x (i8, u8, i16, u16, i32; any shape), 1 scale (f32; scalar, [1] or
// 1-D along `axis`), 2 zero_point (optional, type of x, shape of scale). f16 weights use `cast`.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct DequantizeParams {
  std::int32_t axis = 0;  ///< already normalised
};

extern const OpDef kDequantize;  // "dequantize". Accuracy: consistent

}  // namespace bantam::ops
