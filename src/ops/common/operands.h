// Checks and accessors that operators' infer and run functions share. Freestanding, pure functions.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "bantam/status.h"
#include "bantam/tensor.h"
#include "base/shape.h"
#include "ops/op.h"

namespace bantam::ops {

/// True when optional operand i was given. For infer; kernels ask Invocation::has.
inline bool is_given(std::span<const Tensor> inputs, int i) noexcept {
  return i < static_cast<int>(inputs.size()) && inputs[static_cast<std::size_t>(i)].desc->present();
}

inline const TensorDesc& desc_of(std::span<const Tensor> inputs, int i) noexcept {
  return *inputs[static_cast<std::size_t>(i)].desc;
}

/// Data movement works on whole bytes: 4-bit elements exist in weights only.
inline Status check_whole_bytes(const TensorDesc& desc, int operand) noexcept {
  if (element_size(desc.type) == 0)
    return failure(StatusCode::kUnsupported, "elements of less than a byte cannot be moved one by one",
                   element_bits(desc.type), 8)
        .at(operand);
  return ok_status();
}

inline Status check_type(const TensorDesc& desc, ElementType expected, int operand) noexcept {
  if (desc.type != expected)
    return failure(StatusCode::kInvalidModel, "operand has the wrong element type",
                   static_cast<std::int64_t>(desc.type), static_cast<std::int64_t>(expected))
        .at(operand);
  return ok_status();
}

inline Status check_rank(const TensorDesc& desc, int expected, int operand) noexcept {
  if (desc.rank != expected)
    return failure(StatusCode::kInvalidModel, "operand has the wrong rank", desc.rank, expected).at(operand);
  return ok_status();
}

inline Status check_index_type(const TensorDesc& desc, int operand) noexcept {
  if (desc.type != ElementType::kI32 && desc.type != ElementType::kI64)
    return failure(StatusCode::kInvalidModel, "indices must be i32 or i64", static_cast<std::int64_t>(desc.type),
                   static_cast<std::int64_t>(ElementType::kI64))
        .at(operand);
  return ok_status();
}

/// A parameter list that must have one entry per dimension.
inline Status check_list(const IntList& list, int expected, const char* message) noexcept {
  return list.size == expected ? ok_status() : failure(StatusCode::kInvalidModel, message, list.size, expected);
}

/// The dense desc whose dimensions a parameter lists.
inline Status desc_from_list(ElementType type, const IntList& list, TensorDesc* out) noexcept {
  if (list.size < 0 || list.size > kMaxRank)
    return failure(StatusCode::kInvalidModel, "shape has a wrong number of dimensions", list.size, kMaxRank);
  std::int64_t dims[kMaxRank] = {};
  for (int i = 0; i < list.size; ++i) dims[i] = list.v[i];
  return make_desc(type, dims, list.size, out);
}

/// Parameter `axis`, already normalised, must name a dimension.
inline Status check_axis(std::int32_t axis, int rank) noexcept {
  return axis >= 0 && axis < rank ? ok_status()
                                  : failure(StatusCode::kInvalidModel, "axis is outside the tensor", axis, rank - 1);
}

/// Number of elements in dimensions [begin, end).
inline std::int64_t elements_between(const TensorDesc& desc, int begin, int end) noexcept {
  std::int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= desc.dims[i];
  return n;
}

/// Element i of a dense index tensor (i32 or i64).
inline std::int64_t index_at(const Tensor& indices, std::int64_t i) noexcept {
  return indices.desc->type == ElementType::kI32 ? indices.as<const std::int32_t>()[i]
                                                 : indices.as<const std::int64_t>()[i];
}

/// `index` counted from the front of a dimension of that size, or -1 when it is outside [-size, size).
constexpr std::int64_t wrap_index(std::int64_t index, std::int64_t size) noexcept {
  if (index < -size || index >= size) return -1;
  return index < 0 ? index + size : index;
}

inline Status index_fault(std::int64_t index, std::int64_t size) noexcept {
  return failure(StatusCode::kOutOfRange, "index is outside its dimension", index, size);
}

/// True when all operands that are present, and all results, are dense: what a kernel without strides supports.
inline bool all_dense(const OpCall& call) noexcept {
  for (const Tensor& t : call.inputs)
    if (t.desc->present() && !t.desc->is_dense()) return false;
  for (const Tensor& t : call.outputs)
    if (!t.desc->is_dense()) return false;
  return true;
}

/// Gives dimensions of size 1 the strides they would have in an unbroken walk, so that a view derived from another one
/// looks the same however it came about. False when the innermost dimension would not be contiguous: no view then.
inline bool finish_view(TensorDesc* view) noexcept {
  std::int64_t inner = 1;
  for (int i = view->rank - 1; i >= 0; --i) {
    if (view->dims[i] <= 1) {
      view->strides[i] = static_cast<std::int32_t>(inner <= kMaxElements ? inner : kMaxElements);
    } else {
      if (i == view->rank - 1 && view->strides[i] != 1) return false;
      inner = static_cast<std::int64_t>(view->strides[i]) * view->dims[i];
    }
  }
  return true;
}

}  // namespace bantam::ops
