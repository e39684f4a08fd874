// The k largest or smallest elements along an axis, in sorted order; of equal elements the lower index first. Operand
// 0: f32, f64, i32, i64, i8, u8. Results: 0 values, 1 indices (i64 or i32: `to`).
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct TopkParams {
  std::int32_t axis = -1;
  std::int32_t k = 1;
  std::int32_t largest = 1;
  ElementType32 to{ElementType::kI64};
};

extern const OpDef kTopk;  // "topk". Accuracy: exact

}  // namespace bantam::ops
