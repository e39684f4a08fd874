// A few integers that are parameters, not a constant, so that they can follow the sizes of a model's dimensions: what a
// graph made of shapes is, once sizes change (compiler/sized_graph.cpp). No operands. Result: `to` (i32 or i64) of the
// shape that `shape` lists, with `values` in row-major order, at most kMaxRank of them.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct IntegersParams {
  IntList values{};
  IntList shape{};
  ElementType32 to{ElementType::kI64};
};

extern const OpDef kIntegers;  // "integers". Accuracy: exact

}  // namespace bantam::ops
