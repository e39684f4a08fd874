// Packed weights of windows that are multiplied in lines (image_lines.h), whose rows have whole quads: of other windows
// a copy, with zeros behind each row, so that what lies there in the image means nothing. Used by windows.h; lives on
// the caller's stack while a product runs. Freestanding.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

#include "ops/nn/conv2d/problem.h"
#include "ops/nn/gemm/gemm_i8.h"

namespace bantam::ops::conv2d {

/// Bytes of the packed weights of one group.
inline std::int64_t packed_window_bytes(const Problem& p) { return gemm::packed_i8_bytes(p.k, p.group_outputs); }

/// The product of all columns of so packed weights.
inline gemm::RightPanelsI8 all_panels(const Problem& p, const std::int8_t* packed) {
  return {packed, p.group_outputs, 0, gemm::panel_count(p.group_outputs)};
}

class LineWeights {
 public:
  /// Of `packed` weights, group after group, for so many windows; refers to p. `in_lines`: may these be multiplied in
  /// lines?
  LineWeights(const Problem& p, const std::int8_t* packed, bool in_lines, std::int64_t windows)
      : problem_(&p), packed_(packed) {
    if (!in_lines || p.one_run) return;
    const std::int64_t row = gemm::row_numbers(p.row);
    const std::int64_t k = p.g.vertical.kernel * row;
    const bool in_whole_quads = row == p.row || p.g.horizontal.dilation != 1;
    if (!in_whole_quads && (p.g.groups != 1 || windows < kFewestWindows ||
                            gemm::packed_i8_bytes(k, p.group_outputs) > static_cast<std::int64_t>(sizeof copy_)))
      return;
    serve_ = gemm::takes_lines(p.g.y.w, p.k, p.group_outputs, in_whole_quads ? 0 : k - p.k);
    if (!serve_ || in_whole_quads) return;
    padded_ = p;
    padded_->row = row;
    padded_->k = k;
    problem_ = &*padded_;
    packed_ = copy_;
    for (std::int64_t i = 0; i < gemm::panel_count(p.group_outputs); ++i)
      copy_panel(p, packed + i * gemm::panel_bytes(p.k), copy_ + i * gemm::panel_bytes(k));
  }
  LineWeights(const LineWeights&) = delete;
  LineWeights& operator=(const LineWeights&) = delete;

  /// Are windows to be multiplied in lines?
  bool serve() const { return serve_; }
  /// The convolution of which these are the weights.
  const Problem& problem() const { return *problem_; }
  gemm::RightPanelsI8 of(std::int32_t group) const {
    return all_panels(*problem_, packed_ + group * packed_window_bytes(*problem_));
  }

 private:
  static constexpr std::int64_t kFewestWindows = 64;  ///< for fewer a copy does not pay
  static_assert(std::endian::native == std::endian::little);

  /// Rows of a panel from p.row numbers to those of padded_.
  void copy_panel(const Problem& p, const std::int8_t* from, std::int8_t* to) const {
    for (std::int32_t ky = 0; ky < p.g.vertical.kernel; ++ky)
      for (std::int64_t at = 0; at < padded_->row; at += 4, to += 4 * gemm::kPanel)
        copy_quads(from, ky * p.row + at, std::min<std::int64_t>(p.row - at, 4), to);
    std::memcpy(to, from + gemm::quad_count(p.k) * 4 * gemm::kPanel, gemm::kPanel * sizeof(std::int32_t));
  }

  /// For each column the `count` numbers from k on, and zeros up to a quad. They begin in one of the panel's quads and
  /// end in the next, behind the last of which the columns' sums lie.
  static void copy_quads(const std::int8_t* panel, std::int64_t k, std::int64_t count, std::int8_t* to) {
    std::uint32_t quads[2][gemm::kPanel];
    std::memcpy(quads, panel + k / 4 * 4 * gemm::kPanel, sizeof quads);
    const auto bits = static_cast<int>(k % 4 * 8);
    const std::uint32_t kept = ~std::uint32_t{0} >> (32 - 8 * count);
    for (std::int64_t column = 0; column < gemm::kPanel; ++column) {
      const std::uint64_t both = quads[0][column] | std::uint64_t{quads[1][column]} << 32;
      quads[0][column] = static_cast<std::uint32_t>(both >> bits) & kept;
    }
    std::memcpy(to, quads[0], sizeof quads[0]);
  }

  const Problem* problem_;
  std::optional<Problem> padded_;  ///< with rows of whole quads
  const std::int8_t* packed_;
  bool serve_ = false;
  alignas(64) std::int8_t copy_[12288];
};

}  // namespace bantam::ops::conv2d
