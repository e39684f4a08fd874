// The boxes that are left when, class by class, those that overlap one of a higher score too much are taken out.
// Operands: 0 boxes f32 [batch, n, 4], two opposite corners (y, x, y, x), or centre and size (x, y, width, height) with
// `center_point_box`; 1 scores f32 [batch, classes, n]; 2 the most boxes per batch and class, i64 with one element,
// absent or not positive: none; 3 the share (intersection over union) that boxes may have in common, f32 with one
// element, absent: 0; 4 the score that boxes must exceed, f32 with one element, absent: any will do.
// Results: 0 i64 [capacity, 3], rows (batch, class, box) by batch, class and descending score (the lower box first
// where scores are equal, NaN last), zero after the last; 1 how many there are, i64 []. More than `capacity` are a
// data-dependent fault (kOutOfRange). Boxes without area overlap nothing. Computed in f32 as ONNX Runtime does.
// Exact: the same on every target. Scratch 4 bytes per box.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct NonMaxSuppressionParams {
  std::int32_t center_point_box = 0;
  std::int32_t capacity = 0;
};

extern const OpDef kNonMaxSuppression;  // "non_max_suppression". Accuracy: consistent

}  // namespace bantam::ops
