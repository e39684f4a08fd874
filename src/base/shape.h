// Checked arithmetic on shapes. Every size that comes from a model, a package or a caller passes through here before
// it is multiplied, so that later code may multiply without fear. Freestanding, pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "bantam/status.h"
#include "bantam/tensor.h"

namespace bantam {

/// Largest number of elements of one tensor: keeps every index and byte count of 8-byte elements within int64 and
/// every element index within int32.
inline constexpr std::int64_t kMaxElements = 0x7fffffff;

/// a * b, or nothing when the product leaves int64. Defined for all arguments.
constexpr std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// a + b, or nothing when the sum leaves int64.
constexpr std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

/// `value` rounded up to a multiple of `alignment`, a power of two. Requires 0 <= value <= INT64_MAX - alignment.
constexpr std::int64_t align_up(std::int64_t value, std::int64_t alignment) noexcept {
  return (value + alignment - 1) & ~(alignment - 1);
}

/// Verifies type, rank, dimensions and the element count. Strides are not looked at.
Status check_shape(const TensorDesc& desc) noexcept;

/// Verifies check_shape and that every element of a possibly strided tensor lies within `storage_elements` elements
/// counted from its first, with the innermost dimension contiguous and no overlap between rows.
Status check_strides(const TensorDesc& desc, std::int64_t storage_elements) noexcept;

/// Number of elements from the first to one past the last element that a possibly strided tensor touches; 0 when
/// empty. Requires a valid desc.
std::int64_t storage_span(const TensorDesc& desc) noexcept;

/// A dense desc. Fails like check_shape. `dims` has `rank` entries.
Status make_desc(ElementType type, const std::int64_t* dims, int rank, TensorDesc* out) noexcept;

/// The shape of a and b broadcast together (NumPy rules), with the given element type. False when they do not match.
bool broadcast(const TensorDesc& a, const TensorDesc& b, ElementType type, TensorDesc* out) noexcept;

/// `axis` counted from the front: accepts -rank <= axis < rank, else -1.
constexpr int normalize_axis(std::int64_t axis, int rank) noexcept {
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? static_cast<int>(axis) : -1;
}

}  // namespace bantam
