// A row of cells that can be raised over a range and asked for its maximum over a range, both in O(log n).
// Used by the planners for the tops and loads of sections of time. Thread rule: one thread at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bantam::plan {

class RangeMax {
 public:
  /// `cells` cells of value 0.
  explicit RangeMax(std::size_t cells)
      : leaves_(std::bit_ceil(std::max<std::size_t>(cells, 1))), inside_(2 * leaves_, 0), whole_(2 * leaves_, 0) {}

  /// Makes every cell of [begin, end) at least `value`.
  void raise(std::size_t begin, std::size_t end, std::int64_t value) { raise(1, 0, leaves_, begin, end, value); }

  /// The largest of [begin, end); 0 when empty.
  std::int64_t max(std::size_t begin, std::size_t end) const { return max(1, 0, leaves_, begin, end); }

 private:
  void raise(std::size_t node, std::size_t low, std::size_t high, std::size_t begin, std::size_t end,
             std::int64_t value) {
    if (end <= low || high <= begin) return;
    inside_[node] = std::max(inside_[node], value);
    if (begin <= low && high <= end) {
      whole_[node] = std::max(whole_[node], value);
      return;
    }
    const std::size_t middle = (low + high) / 2;
    raise(2 * node, low, middle, begin, end, value);
    raise(2 * node + 1, middle, high, begin, end, value);
  }

  std::int64_t max(std::size_t node, std::size_t low, std::size_t high, std::size_t begin, std::size_t end) const {
    if (end <= low || high <= begin) return 0;
    if (begin <= low && high <= end) return inside_[node];
    const std::size_t middle = (low + high) / 2;
    const std::int64_t part =
        std::max(max(2 * node, low, middle, begin, end), max(2 * node + 1, middle, high, begin, end));
    return std::max(part, whole_[node]);
  }

  std::size_t leaves_;
  std::vector<std::int64_t> inside_;  ///< largest value anywhere below the node
  std::vector<std::int64_t> whole_;   ///< value to which all cells below the node were raised at once
};

}  // namespace bantam::plan
