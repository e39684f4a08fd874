// Walking tensors whose elements do not lie densely: operands of steps may be views, and a reference may be read with
// its axes in another order. Header only; touches memory only within the strides given; allocates nothing.
#pragma once

#include <cstdint>

#include "bantam/tensor.h"

namespace bantam::diagnose {

/// Strides in elements, by axis of the shape that is walked.
struct Walk {
  std::int64_t strides[kMaxRank] = {};

  static Walk of(const TensorDesc& desc) {
    Walk walk;
    for (int i = 0; i < desc.rank; ++i) walk.strides[i] = desc.strides[i];
    return walk;
  }
};

/// Calls f(offset in a, offset in b), in elements, for every element of `shape` in row-major order.
template <typename F>
void walk_pairs(const TensorDesc& shape, const Walk& a, const Walk& b, F&& f) {
  const std::int64_t count = shape.elements();
  std::int32_t index[kMaxRank] = {};
  std::int64_t at_a = 0;
  std::int64_t at_b = 0;
  for (std::int64_t n = 0; n < count; ++n) {
    f(at_a, at_b);
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
      at_a += a.strides[axis];
      at_b += b.strides[axis];
      if (++index[axis] < shape.dims[axis]) break;
      at_a -= a.strides[axis] * shape.dims[axis];
      at_b -= b.strides[axis] * shape.dims[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace bantam::diagnose
