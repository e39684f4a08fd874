// Max pooling that also says where each maximum stands. Operand 0: x [N,C,...] of any number type, channels first, with
// 1 to 6 spatial axes. Result 0: y [N,C,...], the maxima; result 1: i64 of the same shape, the index of each maximum in
// the flattened operand. Windows as in pool2d (common/window.h), one list entry per spatial axis. With `column_major`
// the index counts the spatial axes of one channel with the first one fastest; batch and channel count the same way.
// Of equal maxima the first in row-major order counts; NaNs and padding do not. A window that meets no element gives
// the lowest value and index -1. Exact. Source: ONNX MaxPool. Dense operands.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct MaxPoolIndicesParams {
  IntList kernel{};
  IntList strides{};
  IntList dilations{};
  IntList before{};
  IntList after{};
  std::int32_t ceil_mode = 0;
  std::int32_t column_major = 0;
};

extern const OpDef kMaxPoolIndices;  // "max_pool_indices". Accuracy: exact

}  // namespace bantam::ops
