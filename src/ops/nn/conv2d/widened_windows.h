// The left matrix of a convolution as the integer matrix product takes it (nn/gemm/gemm_i8.h): the windows of output
// pixels, widened to int16 with the zero point subtracted. Used by the integer kernels of conv2d and conv2d_affine;
// lives on the caller's stack while a product runs. Freestanding.
#pragma once

#include <cstring>

#include "ops/nn/conv2d/problem.h"
#include "ops/nn/gemm/gemm_i8.h"

namespace bantam::ops::conv2d {

template <typename X>
class WidenedWindows {
 public:
  /// Windows of the output pixels from `index` on; `x` is the first channel of the group.
  WidenedWindows(const Problem& p, const X* x, std::int32_t zero_point, std::int64_t index)
      : p_(p), x_(x), zero_point_(zero_point), index_(index) {}

  /// Of `count` pixels. Refers to this.
  gemm::LeftSourceI16 rows(std::int64_t count) const { return {count, p_.k, gather, this}; }

 private:
  static void gather(const void* context, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count,
                     std::int16_t* to) {
    static_cast<const WidenedWindows*>(context)->gather_rows(row, rows, first, count, to);
  }

  void gather_rows(std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count,
                   std::int16_t* to) const {
    const std::int64_t index = index_ + row;
    if (count == p_.k && count % 2 == 0 && p_.one_run && p_.g.x.w_stride == count) {
      // Pixels of a dense image, of which the convolution sees one at a time, are the rows already.
      widen(x_ + index * count, rows * count, to);
      return;
    }
    for (std::int64_t i = 0; i < rows; ++i, to += gemm::row_numbers(count)) {
      gather_window(p_, x_, pixel_at(p_.g.y, index + i), first, count, to,
                    [this](const X* from, std::int64_t n, std::int16_t* widened) { widen(from, n, widened); });
      if (count % 2 != 0) to[count] = 0;
    }
  }

  void widen(const X* from, std::int64_t n, std::int16_t* to) const {
    constexpr std::int64_t kShort = 16;  // a call costs more than so many elements
    if constexpr (sizeof(X) == sizeof *to) {
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof *to);  // the int16 form has no zero point
    } else if (n > kShort) {
      gemm::widen(from, n, zero_point_, to);
    } else {
      for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<std::int16_t>(from[i] - zero_point_);
    }
  }

  const Problem& p_;
  const X* x_;
  std::int32_t zero_point_;
  std::int64_t index_;
};

/// The pixels that one product of a convolution may take: all there are, but few where the result overlaps the operand,
/// which is consumed from front to back.
inline constexpr std::int64_t kOverlapPixels = gemm::kMaxTileRows;

/// Scratch of the integer matrix products of a convolution, whose threads get equal parts.
struct ProductScratch {
  std::int64_t least = 0;  ///< bytes of one thread
  std::int64_t useful = 0;
};

inline ProductScratch product_scratch(const Problem& p) {
  constexpr std::int64_t kNumber = sizeof(std::int16_t);
  const std::int64_t pixels = static_cast<std::int64_t>(p.g.y.n) * p.g.y.h * p.g.y.w;
  return {align_up(gemm::least_numbers(pixels, p.k) * kNumber, kAlignment),
          align_up(gemm::useful_numbers(pixels, p.k) * kNumber, kAlignment)};
}

}  // namespace bantam::ops::conv2d
