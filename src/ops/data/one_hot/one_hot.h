// A new axis of size `depth` that is `on` at the index and `off` elsewhere; indices outside [-depth, depth) give all
// off. Operands: 0 indices (i32, i64, f32); 1 off, 2 on (scalars of any one type, the result's).
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct OneHotParams {
  std::int32_t axis = -1;  ///< normalised within the result's rank
  std::int32_t depth = 0;
};

extern const OpDef kOneHot;  // "one_hot". Accuracy: exact

}  // namespace bantam::ops
