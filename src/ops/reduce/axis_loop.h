// What the operators that work along an axis share: the shape of their results, and a dense tensor seen as
// [outer, length, inner]. Freestanding, pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bantam/tensor.h"
#include "base/shape.h"
#include "ops/common/operands.h"

namespace bantam::ops {

/// A dense tensor as lines along one axis: line l holds the elements offset(l) + i * inner, 0 <= i < length.
struct AxisLoop {
  std::int64_t outer = 0;
  std::int64_t length = 0;
  std::int64_t inner = 0;

  /// `axis` may count from the end; infer verified it.
  AxisLoop(const TensorDesc& desc, std::int32_t axis) noexcept {
    const int front = normalize_axis(axis, desc.rank);
    outer = elements_between(desc, 0, front);
    length = desc.dims[front];
    inner = elements_between(desc, front + 1, desc.rank);
  }

  std::int64_t lines() const noexcept { return outer * inner; }
  std::int64_t offset(std::int64_t line) const noexcept { return line / inner * inner * length + line % inner; }

  /// Lines per task of a parallel loop: some microseconds of work.
  std::int64_t grain() const noexcept { return 1 + 8192 / std::max<std::int64_t>(length, 1); }
};

/// The dense desc of `x` with the dimensions in the bit mask `axes` reduced: kept as 1 or removed.
inline TensorDesc reduced_desc(const TensorDesc& x, unsigned axes, bool keep_dims, ElementType type) noexcept {
  TensorDesc result;
  result.type = type;
  for (int i = 0; i < x.rank; ++i) {
    const bool reduced = (axes >> i & 1U) != 0;
    if (!reduced || keep_dims) result.dims[result.rank++] = reduced ? 1 : x.dims[i];
  }
  result.set_dense_strides();
  return result;
}

}  // namespace bantam::ops
