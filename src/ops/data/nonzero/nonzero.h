// Where the elements that are not zero lie, in row-major order; NaN is not zero. Operand 0: any type of whole bytes.
// Results: 0 coordinates i64 [capacity, rank], one row per element found, zero in the rows after them; 1 how many there
// are, i64 []. More than `capacity` of them are a data-dependent fault (kOutOfRange). Exact.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct NonzeroParams {
  std::int32_t capacity = 0;
};

extern const OpDef kNonzero;  // "nonzero". Accuracy: exact

}  // namespace bantam::ops
