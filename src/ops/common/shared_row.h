// Rows of an element-wise result that lie one behind the other and share one row of an operand, such as a number for
// each channel of an image: copies of it side by side make several rows one, which has fewer ends. Freestanding;
// nothing is allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "ops/common/strides.h"

namespace bantam::ops {

/// Of rows that lie one behind the other: the operand, 1 or 2, whose only row they all share; else 0.
inline int shared_operand(const StridedRows<3>& rows) noexcept {
  const auto& steps = rows.outer_strides[0];
  if (rows.outer_rank != 1 || !rows.all_contiguous() || steps[0] != rows.row_length) return 0;
  if (steps[1] == 0 && steps[2] == rows.row_length) return 1;
  return steps[2] == 0 && steps[1] == rows.row_length ? 2 : 0;
}

/// Rows of an operand, copied side by side, up to so many numbers; T is its type. They lie on the stack.
template <typename T, std::int64_t kCopied = 4096 / static_cast<std::int64_t>(sizeof(T))>
class SharedRow {
 public:
  /// The longest row that is copied.
  static constexpr std::int64_t kLongest = kCopied / 4;

  /// Are rows so short, and elements [begin, end) so many, that copies save time?
  static bool saves_time(std::int64_t row_length, std::int64_t begin, std::int64_t end) noexcept {
    return row_length <= kLongest && end - begin >= 4 * row_length;
  }

  /// Requires saves_time.
  SharedRow(const T* row, std::int64_t row_length, std::int64_t begin, std::int64_t end) noexcept
      : row_length_(row_length) {
    constexpr std::int64_t kWholeVectors = 64;  // numbers
    const std::int64_t copies = std::min(kCopied, end - begin + row_length) / row_length;
    const std::int64_t even = kWholeVectors / std::gcd(row_length, kWholeVectors);
    run_length_ = (copies > even ? (copies - 1) / even * even : copies - 1) * row_length;
    std::copy_n(row, row_length, copied_);
    for (std::int64_t done = 1, more = 1; done < copies; done += more) {
      more = std::min(done, copies - done);
      std::copy_n(copied_, more * row_length, copied_ + done * row_length);
    }
  }

  /// Calls f(first, n, row) for runs that make up the elements [begin, end); row: what meets element `first` and those
  /// after it.
  template <typename F>
  void for_each_run(std::int64_t begin, std::int64_t end, F f) const {
    for (std::int64_t i = begin, n = 0; i < end; i += n) {
      n = run_at(i, end);
      f(i, n, from(i));
    }
  }

  /// The length of the run from i on, up to `end`: of fewer copies than there are, so that it may begin anywhere, and
  /// where that is possible of whole vectors.
  std::int64_t run_at(std::int64_t i, std::int64_t end) const noexcept { return std::min(end - i, run_length_); }

  /// What meets element i, and as many after it as a run has.
  const T* from(std::int64_t i) const noexcept { return copied_ + i % row_length_; }

 private:
  std::int64_t row_length_;
  std::int64_t run_length_;
  T copied_[kCopied];
};

}  // namespace bantam::ops
