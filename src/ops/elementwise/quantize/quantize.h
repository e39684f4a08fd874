// y = saturate(round(x / scale) + zero_point). Operands: 0 x (f32, any shape), 1 scale (f32, scalar, [1], or 1-D along
// `axis`), 2 zero_point (optional, type of the result, shape of scale). Result: type `to` (i8, u8, i16, u16, i32).
// NaN gives the zero point.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct QuantizeParams {
  ElementType32 to{};
  std::int32_t axis = 0;             ///< already normalised, used when scale has more than one element
  std::int32_t round_half_away = 0;  ///< 0: half to even (ONNX); 1: half away from zero (TFLite)
};

extern const OpDef kQuantize;  // "quantize". Accuracy: consistent

}  // namespace bantam::ops
