// Index tensors of gather_elements / scatter_elements (one index per element) and of gather_nd / scatter_nd (tuples of
// indices). Freestanding, no allocation.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/common/operands.h"

namespace bantam::ops {

/// Indices of the operand's rank, no dimension but `axis` larger than the operand's.
inline Status check_element_indices(const TensorDesc& x, const TensorDesc& indices, std::int32_t axis) noexcept {
  BANTAM_RETURN_IF_ERROR(check_index_type(indices, 1));
  BANTAM_RETURN_IF_ERROR(check_rank(indices, x.rank, 1));
  BANTAM_RETURN_IF_ERROR(check_axis(axis, x.rank));
  for (int i = 0; i < x.rank; ++i)
    if (i != axis && indices.dims[i] > x.dims[i])
      return failure(StatusCode::kInvalidModel, "indices have a larger dimension than the operand", indices.dims[i],
                     x.dims[i])
          .at(1);
  return ok_status();
}

/// for_each_element_index of indices of type I. A row is what lies along the last dimension.
template <typename I, typename F>
Status for_each_element_index_of(const TensorDesc& x, const Tensor& indices, std::int32_t axis, F&& f) {
  const TensorDesc& shape = *indices.desc;
  const auto* given = indices.as<const I>();
  const std::int64_t count = shape.elements();
  const int last = shape.rank - 1;
  const std::int64_t row = std::max<std::int64_t>(shape.dims[last], 1);
  const std::int64_t row_step = axis == last ? 0 : x.strides[last];
  const std::int64_t extent = x.dims[axis];
  const std::int64_t index_stride = x.strides[axis];
  std::int32_t position[kMaxRank] = {};
  std::int64_t base = 0;  // offset of the row's position, with 0 along `axis`
  for (std::int64_t first = 0; first < count; first += row) {
    for (std::int64_t i = first; i < first + row; ++i) {
      const std::int64_t index = wrap_index(given[i], extent);
      if (index < 0) return index_fault(given[i], extent);
      f(i, base + (i - first) * row_step + index * index_stride);
    }
    for (int d = last - 1; d >= 0; --d) {
      const std::int64_t stride = d == axis ? 0 : x.strides[d];
      base += stride;
      if (++position[d] < shape.dims[d]) break;
      base -= stride * shape.dims[d];
      position[d] = 0;
    }
  }
  return ok_status();
}

/// Calls f(i, element) for every index i of the dense tensor `indices`, in order: `element` is the offset in the dense
/// operand of the element at the index's own position, but for `axis`, where it lies at the index's value.
template <typename F>
Status for_each_element_index(const TensorDesc& x, const Tensor& indices, std::int32_t axis, F&& f) {
  if (indices.desc->type == ElementType::kI32) return for_each_element_index_of<std::int32_t>(x, indices, axis, f);
  return for_each_element_index_of<std::int64_t>(x, indices, axis, f);
}

/// Element offset within the dense operand of the slice that tuple `i` of the indices [..., tuple] names, counting
/// from dimension `first` on. The fault when an index is outside its dimension.
inline Status tuple_offset(const TensorDesc& x, int first, const Tensor& indices, std::int64_t i,
                           std::int64_t* offset) noexcept {
  const int tuple = indices.desc->last(0);
  *offset = 0;
  for (int k = 0; k < tuple; ++k) {
    const std::int64_t given = index_at(indices, i * tuple + k);
    const std::int64_t index = wrap_index(given, x.dims[first + k]);
    if (index < 0) return index_fault(given, x.dims[first + k]);
    *offset += index * x.strides[first + k];
  }
  return ok_status();
}

}  // namespace bantam::ops
