// Sorting an array of indices in place: no heap memory, no recursion, n log n comparisons whatever the data. Used by
// operators that order things by their data. Freestanding.
#pragma once

#include <cstdint>
#include <utility>

namespace bantam::ops {

/// Restores the heap order below slot i of the first n: no element comes before one of its children, so that the root
/// is the last of all.
template <typename Before>
void sift_down(std::int32_t* indices, std::int64_t i, std::int64_t n, const Before& before) {
  for (std::int64_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
    if (child + 1 < n && before(indices[child], indices[child + 1])) ++child;
    if (!before(indices[i], indices[child])) return;
    std::swap(indices[i], indices[child]);
    i = child;
  }
}

/// Sorts n indices. `before(a, b)`: does a come before b? A strict total order, or equal ones come in any order.
template <typename Before>
void heap_sort(std::int32_t* indices, std::int64_t n, const Before& before) {
  for (std::int64_t i = n / 2 - 1; i >= 0; --i) sift_down(indices, i, n, before);
  for (std::int64_t last = n - 1; last > 0; --last) {
    std::swap(indices[0], indices[last]);
    sift_down(indices, 0, last, before);
  }
}

}  // namespace bantam::ops
