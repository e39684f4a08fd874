// The different slices of a tensor along an axis. Operand 0: f32, f64, i8, u8, i32, i64. Results, i64: 0
// first[capacity], where each different slice is met first; 1 inverse[length of the axis], which of them each slice is;
// 2 times[capacity], how often each is met; 3 how many there are, []. They are listed in ascending order (slices are
// compared element by element in row-major order), or as they are first met when `sorted` is 0; beyond the last,
// `first` and `times` are zero. NaN equals NaN and comes after every number; zeros of both signs are equal. More than
// `capacity` are a data-dependent fault (kOutOfRange). Exact; O(n log n) comparisons, scratch 8 bytes per slice.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct UniqueParams {
  std::int32_t axis = 0;
  std::int32_t sorted = 1;
  std::int32_t capacity = 0;
};

extern const OpDef kUnique;  // "unique". Accuracy: exact

}  // namespace bantam::ops
