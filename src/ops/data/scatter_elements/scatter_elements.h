// ONNX ScatterElements. Operands: 0 any type; 1 indices i32 or i64; 2 updates of the indices' shape. May overwrite
// operand 0.
#pragma once

#include "ops/data/scatter_nd/scatter_nd.h"

namespace bantam::ops {

struct ScatterElementsParams {
  std::int32_t axis = 0;
  ScatterReduction reduction = ScatterReduction::kNone;
};

extern const OpDef kScatterElements;  // "scatter_elements". Accuracy: consistent

}  // namespace bantam::ops
