// Reverses the beginning of each sequence of a batch. Operands: 0 x, any type of whole bytes; 1 lengths i32 or i64 [B],
// where B is the size of `batch_axis`. Result: y of x's shape with y[b, t] = x[b, lengths[b] - 1 - t] for t <
// lengths[b] and x[b, t] from there on. A length outside [0, size of `time_axis`] is a data-dependent fault. Exact.
// Source: ONNX ReverseSequence. Dense operands.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct ReverseSequenceParams {
  std::int32_t batch_axis = 1;
  std::int32_t time_axis = 0;
};

extern const OpDef kReverseSequence;  // "reverse_sequence". Accuracy: exact

}  // namespace bantam::ops
