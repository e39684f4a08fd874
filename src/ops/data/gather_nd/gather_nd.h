// Slices picked by index tuples, as ONNX GatherND. Operands: 0 any type; 1 indices i32 or i64 [..., tuple].
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct GatherNdParams {
  std::int32_t batch_dims = 0;
};

extern const OpDef kGatherNd;  // "gather_nd". Accuracy: exact

}  // namespace bantam::ops
