// Index of the largest or smallest element along an axis. Operand 0: f32, i8, u8, i32, i64; result: i64 or i32 (`to`).
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct ArgReduceParams {
  std::int32_t minimum = 0;  ///< 0: arg max; 1: arg min
  std::int32_t axis = 0;
  std::int32_t keep_dims = 1;
  std::int32_t select_last = 0;  ///< of equal elements, take the last
  ElementType32 to{ElementType::kI64};
};

extern const OpDef kArgReduce;  // "arg_reduce". Accuracy: exact

}  // namespace bantam::ops
