// result[i...] = operand[start + i * step ...] for every axis. Any type. Parameters are normalised: every axis listed,
// 0 <= start < dim (any start where size is 0), step != 0, the last index inside the operand, sizes = result dims.
// A view when all steps are 1. Accepts a strided operand.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct SliceParams {
  IntList starts{};
  IntList steps{};
  IntList sizes{};
};

extern const OpDef kSlice;  // "slice". Accuracy: exact

}  // namespace bantam::ops
