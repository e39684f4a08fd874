// A copy of operand 0 in which slices picked by index tuples are replaced by, or combined with, the updates (ONNX
// ScatterND). Operands: 0 any type; 1 indices i32 or i64 [..., tuple]; 2 updates, type of operand 0. May overwrite
// operand 0.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

enum class ScatterReduction : std::int32_t { kNone = 0, kAdd, kMul, kMin, kMax, kCount };

struct ScatterNdParams {
  ScatterReduction reduction = ScatterReduction::kNone;
};

extern const OpDef kScatterNd;  // "scatter_nd". Accuracy: consistent

}  // namespace bantam::ops
