// Moving boxes of elements: every operator that only rearranges data (copy, transpose, slice, concat, expand, tile,
// pad) says which loop nest it means and lets `copy_box` find the fast way: whole rows by memcpy, blocked
// two-dimensional transposition, or plain strided loops. Freestanding, no allocation, re-entrant.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bantam/tensor.h"

namespace bantam::ops {

/// A loop nest over elements, outermost level first. Element (i0, i1, ...) lies sum(i * source) elements after the
/// first source element and sum(i * destination) after the first destination element. Strides may be zero or negative
/// in the source; destination elements are distinct.
struct Box {
  static constexpr int kMaxLevels = 2 * kMaxRank;
  struct Level {
    std::int64_t size = 1;
    std::int64_t source = 0;
    std::int64_t destination = 0;
  };

  int rank = 0;
  Level levels[kMaxLevels];

  void add(std::int64_t size, std::int64_t source, std::int64_t destination) noexcept {
    levels[rank++] = {size, source, destination};
  }
};

/// The box of all elements of `shape`, read and written with the strides of the two descs, which have its rank.
Box make_box(const TensorDesc& shape, const TensorDesc& source, const TensorDesc& destination) noexcept;

/// Copies the box. Elements have 1, 2, 4 or 8 bytes; memory does not overlap and needs no alignment.
void copy_box(Box box, std::int64_t element_bytes, const void* source, void* destination) noexcept;

/// Sets every destination element of the box to the element at `value`.
void fill_box(Box box, std::int64_t element_bytes, const void* value, void* destination) noexcept;

/// `base` moved by a number of elements.
inline const void* advance(const void* base, std::int64_t elements, std::int64_t element_bytes) noexcept {
  return static_cast<const std::byte*>(base) + elements * element_bytes;
}
inline void* advance(void* base, std::int64_t elements, std::int64_t element_bytes) noexcept {
  return static_cast<std::byte*>(base) + elements * element_bytes;
}

}  // namespace bantam::ops
