// Moving boxes of elements: every operator that only rearranges data (copy, transpose, slice, concat, expand, tile,
// pad) says which loop nest it means and lets `copy_box` find the fast way: whole rows by memcpy, blocked
// two-dimensional transposition, or plain strided loops. Freestanding, no allocation, re-entrant.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bantam/tensor.h"
#include "bantam/threads.h"

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

/// Drops levels of size 1 and merges neighbours that form one longer run. False when the box is empty.
bool simplify(Box* box) noexcept;

/// Removes level `i` and returns it.
Box::Level take_level(Box* box, int i) noexcept;

/// The level other than the innermost along which the source is contiguous, or -1.
int find_contiguous_source(const Box& box) noexcept;

/// Calls f(source offset, destination offset), in bytes, for the iterations [begin, end) of the levels, which are not
/// empty, outermost first.
template <typename F>
void for_iterations(const Box& box, std::int64_t bytes, std::int64_t begin, std::int64_t end, F&& f) noexcept {
  std::int64_t index[Box::kMaxLevels] = {};
  std::int64_t source = 0;
  std::int64_t destination = 0;
  for (std::int64_t i = box.rank - 1, rest = begin; rest > 0 && i >= 0; --i) {
    const Box::Level& level = box.levels[i];
    index[i] = rest % level.size;
    rest /= level.size;
    source += index[i] * level.source * bytes;
    destination += index[i] * level.destination * bytes;
  }
  for (std::int64_t n = begin; n < end; ++n) {
    f(source, destination);
    for (int i = box.rank - 1; i >= 0; --i) {
      const Box::Level& level = box.levels[i];
      source += level.source * bytes;
      destination += level.destination * bytes;
      if (++index[i] < level.size) break;
      source -= level.source * level.size * bytes;
      destination -= level.destination * level.size * bytes;
      index[i] = 0;
    }
  }
}

/// How often the levels iterate.
inline std::int64_t iterations(const Box& box) noexcept {
  std::int64_t count = 1;
  for (int i = 0; i < box.rank; ++i) count *= box.levels[i].size;
  return count;
}

/// The same for all of them.
template <typename F>
void for_each_iteration(const Box& box, std::int64_t bytes, F&& f) noexcept {
  for_iterations(box, bytes, 0, iterations(box), f);
}

/// Copies the box. Elements have 1, 2, 4 or 8 bytes; memory does not overlap and needs no alignment.
void copy_box(const Box& box, std::int64_t element_bytes, const void* source, void* destination) noexcept;

/// The same by all threads, each a part of the box.
void copy_box(const Threads& threads, Box box, std::int64_t element_bytes, const void* source,
              void* destination) noexcept;

/// Sets every destination element of the box to the element at `value`; all threads share the box.
void fill_box(const Threads& threads, Box box, std::int64_t element_bytes, const void* value,
              void* destination) noexcept;

/// `base` moved by a number of elements.
inline const void* advance(const void* base, std::int64_t elements, std::int64_t element_bytes) noexcept {
  return static_cast<const std::byte*>(base) + elements * element_bytes;
}
inline void* advance(void* base, std::int64_t elements, std::int64_t element_bytes) noexcept {
  return static_cast<std::byte*>(base) + elements * element_bytes;
}

}  // namespace bantam::ops
