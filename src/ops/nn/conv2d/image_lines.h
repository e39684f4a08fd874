// Windows that are multiplied where they lie (gemm::Lines): some rows of an image are copied with what stands for
// padding around them, so that the windows of a row of results are a line, and the rows of a window its segments. That
// copies each number once where gathered windows have it as often as windows have taps. Used by windows.h; lives on the
// caller's stack while a product runs. Freestanding.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/nn/conv2d/problem.h"
#include "ops/nn/gemm/gemm_i8.h"

namespace bantam::ops::conv2d {

class ImageLines {
 public:
  /// Of bytes of that form, copied into the workspace.
  ImageLines(const Problem& p, gemm::ByteForm form, const gemm::Workspace& workspace)
      : p_(p),
        form_(form),
        to_(reinterpret_cast<std::uint8_t*>(workspace.numbers)),
        room_(workspace.count * static_cast<std::int64_t>(sizeof(*workspace.numbers)) - kBehind) {
    const WindowAxis& across = p.g.horizontal;
    const std::int64_t taps_apart = (across.kernel - 1) * static_cast<std::int64_t>(across.dilation);
    pixels_ = (p.g.y.w - 1) * static_cast<std::int64_t>(across.stride) + taps_apart + 1;
    row_ = pixels_ * p.group_inputs;
  }

  /// How many rows of results fit at once; 0: none, or windows are empty or do not lie in segments of whole quads.
  std::int64_t rows_at_once() const {
    const bool has_segments = p_.k > 0 && (p_.g.horizontal.dilation == 1 || p_.g.vertical.kernel == 1);
    if (p_.one_run || !has_segments || segment() % 4 != 0 || room_ < 0) return 0;
    const std::int64_t least = image_rows(1);
    const std::int64_t rows = std::max(std::min(room_, kMostBytes) / row_, std::min(room_ / row_, least));
    return rows < least ? 0 : (rows - least) / p_.g.vertical.stride + 1;
  }

  /// Windows of `rows` rows of results from the one that begins with pixel `at` on, all of one item; `x` is the first
  /// channel of the group. Overwrites those before.
  gemm::LeftSource copy(const std::uint8_t* x, const Pixel& at, std::int64_t rows) const {
    const WindowAxis& down = p_.g.vertical;
    const std::int64_t first = window_origin(down, at.y);
    for (std::int64_t i = 0; i < image_rows(rows); ++i) copy_row(x, at.n, first + i, to_ + i * row_);
    std::fill_n(to_ + image_rows(rows) * row_, kBehind, std::uint8_t{0});
    const bool one_row = down.kernel == 1;
    return {.rows = rows * p_.g.y.w,
            .k = p_.k,
            .zero = form_.zero,
            .data = to_,
            .row_stride = p_.g.horizontal.stride * p_.group_inputs,
            .lines = {.rows = p_.g.y.w,
                      .stride = down.stride * row_,
                      .segment = segment(),
                      .segment_stride = one_row ? p_.g.horizontal.dilation * p_.group_inputs : down.dilation * row_}};
  }

 private:
  static constexpr std::int64_t kMostBytes = 16384;  ///< of rows that are copied: half of a first-level cache
  static constexpr std::int64_t kBehind = 4;         ///< bytes behind them that may be read: the rest of a quad

  /// Of an image, that so many rows of results need.
  std::int64_t image_rows(std::int64_t rows) const {
    return (rows - 1) * p_.g.vertical.stride + (p_.g.vertical.kernel - 1) * std::int64_t{p_.g.vertical.dilation} + 1;
  }

  /// Numbers of a window that lie in one piece.
  std::int64_t segment() const { return p_.g.horizontal.dilation == 1 ? p_.row : p_.group_inputs; }

  void copy_row(const std::uint8_t* x, std::int64_t n, std::int64_t iy, std::uint8_t* to) const {
    const ImageShape& image = p_.g.x;
    const auto outside = static_cast<std::uint8_t>(form_.zero);
    const std::int64_t x0 = window_origin(p_.g.horizontal, 0);
    const std::int64_t before = std::clamp<std::int64_t>(-x0, 0, pixels_) * p_.group_inputs;
    const std::int64_t first = std::max<std::int64_t>(x0, 0);
    const bool is_outside = iy < 0 || iy >= image.h;
    const std::int64_t there =
        is_outside ? 0 : std::clamp<std::int64_t>(image.w - first, 0, pixels_ - before / p_.group_inputs);
    const std::int64_t inside = there * p_.group_inputs;
    std::fill_n(to, before, outside);
    if (inside > 0) {
      const std::uint8_t* from = x + image.offset(n, iy, first);
      if (image.w_stride == p_.group_inputs) {
        copy_numbers(1, inside, from, 0, to + before, 0);
      } else {
        copy_numbers(there, p_.group_inputs, from, image.w_stride, to + before, p_.group_inputs);
      }
      if (form_.flip != 0)
        for (std::int64_t i = before; i < before + inside; ++i) to[i] ^= form_.flip;
    }
    std::fill_n(to + before + inside, row_ - before - inside, outside);
  }

  const Problem& p_;
  gemm::ByteForm form_;
  std::uint8_t* to_;
  std::int64_t room_;        ///< bytes
  std::int64_t pixels_ = 0;  ///< of a row that is copied
  std::int64_t row_ = 0;     ///< bytes of it
};

}  // namespace bantam::ops::conv2d
