// The left matrix of a convolution as the integer matrix product takes it (nn/gemm/gemm_i8.h): the windows of output
// pixels, with what stands for zero where they leave the image. Pixels that are windows themselves are not copied. Used
// by the integer kernels of conv2d and conv2d_affine; lives on the caller's stack while a product runs. Freestanding.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/common/unrolled.h"
#include "ops/nn/conv2d/image_lines.h"
#include "ops/nn/conv2d/line_weights.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/conv2d/problem.h"
#include "ops/nn/gemm/gemm_i8.h"

namespace bantam::ops::conv2d {

/// Numbers are bytes, signed or not, or have 16 bits and no zero point.
template <typename Number>
class Windows {
 public:
  /// Windows of the output pixels from `index` on; `x` is the first channel of the group.
  Windows(const Problem& p, const Number* x, gemm::ByteForm form, std::int64_t index)
      : p_(p), x_(x), form_(form), index_(index), outside_(static_cast<Number>(form.zero ^ form.flip)) {}

  /// Of `count` pixels. `overwritten`: results may be written over them, but over nothing that later ones read. Refers
  /// to this.
  gemm::LeftSource rows(std::int64_t count, bool overwritten) const {
    gemm::LeftSource source{.rows = count, .k = p_.k, .flip = form_.flip, .zero = form_.zero, .context = this};
    if constexpr (sizeof(Number) == 1) {
      if (p_.one_run) {
        source.data = reinterpret_cast<const std::uint8_t*>(x_) + index_ * p_.g.x.w_stride;
        source.row_stride = p_.g.x.w_stride;
        source.overwritten = overwritten;
      }
      source.gather_bytes = gather;
    } else {
      source.gather_numbers = gather;
    }
    return source;
  }

 private:
  static constexpr std::int64_t kHalfLoose = 16 / sizeof(Number);
  static constexpr std::int64_t kLoose = 2 * kHalfLoose;  ///< numbers that are copied at once, or half of them
  static constexpr std::int64_t kMostLoose = 6 * kLoose;  ///< in a row of a window that is copied so

  /// Numbers of one row of a window, and what is copied in its place.
  std::int64_t row_numbers() const { return p_.g.horizontal.kernel * p_.group_inputs; }
  std::int64_t loose_numbers() const {
    if (row_numbers() <= kHalfLoose) return kHalfLoose;
    const std::int64_t copies = (row_numbers() + kLoose - 1) / kLoose;
    return (copies > 4 ? std::max<std::int64_t>(copies, kMostLoose / kLoose) : copies) * kLoose;
  }

  static void gather(const void* context, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count,
                     std::int64_t stride, Number* to) {
    const Windows& self = *static_cast<const Windows*>(context);
    const ImageShape& y = self.p_.g.y;
    Pixel at = pixel_at(y, self.index_ + row);
    const bool full = count == self.p_.k && self.p_.taps_touch;
    // Short rows may be copied with what follows them, as long as it is overwritten later.
    const std::int64_t excess = self.loose_numbers() - self.row_numbers();
    const std::int64_t loose_rows = full && excess < kMostLoose ? rows - 1 - excess / stride : 0;
    for (std::int64_t i = 0; i < rows;) {
      std::int64_t done = self.inner_pixels(at, std::min(loose_rows - i, y.w - at.x));
      if (done > 0) {
        self.gather_inner(at, done, stride, to);
      } else if (done = self.pixels_inside(at, std::min(rows - i, y.w - at.x)); done > 0) {
        self.gather_inside(at, done, first, count, stride, to);
      } else {
        done = 1;
        gather_window(self.p_, self.x_, at, first, count, to, self.outside_);
      }
      i += done;
      to += done * stride;
      at.x += done;
      if (at.x < y.w) continue;
      at.x = 0;
      if (++at.y < y.h) continue;
      at.y = 0;
      ++at.n;
    }
  }

  /// How many of `most` output pixels of a row, from `at` on, have windows of short rows inside the image, so that
  /// loose_numbers() may be read from the beginning of each row on.
  std::int64_t inner_pixels(const Pixel& at, std::int64_t most) const {
    const ConvGeometry& g = p_.g;
    const std::int64_t y0 = window_origin(g.vertical, at.y);
    const std::int64_t x0 = window_origin(g.horizontal, at.x);
    const std::int64_t last = y0 + static_cast<std::int64_t>(g.vertical.kernel - 1) * g.vertical.dilation;
    const std::int64_t loose = loose_numbers();
    if (most <= 0 || loose > kMostLoose || y0 < 0 || last >= g.x.h || x0 < 0) return 0;
    // What there is from the beginning of the last row on: of dense images, the rows behind it too.
    const std::int64_t rows_behind = g.x.h_stride == g.x.w * g.x.w_stride ? g.x.h - 1 - last : 0;
    const std::int64_t there = rows_behind * g.x.h_stride + g.x.w_stride * (g.x.w - 1) + p_.group_inputs - loose;
    if (there < 0) return 0;
    const std::int64_t last_x0 = std::min<std::int64_t>(there / g.x.w_stride, g.x.w - g.horizontal.kernel);
    return x0 > last_x0 ? 0 : std::min(most, (last_x0 - x0) / g.horizontal.stride + 1);
  }

  /// How many of `most` output pixels of a row, from `at` on, have windows inside the image.
  std::int64_t pixels_inside(const Pixel& at, std::int64_t most) const {
    const ConvGeometry& g = p_.g;
    const std::int64_t y0 = window_origin(g.vertical, at.y);
    const std::int64_t x0 = window_origin(g.horizontal, at.x);
    const std::int64_t last_y0 = g.x.h - 1 - static_cast<std::int64_t>(g.vertical.kernel - 1) * g.vertical.dilation;
    const std::int64_t last_x0 = g.x.w - 1 - static_cast<std::int64_t>(g.horizontal.kernel - 1) * g.horizontal.dilation;
    if (y0 < 0 || y0 > last_y0 || x0 < 0 || x0 > last_x0) return 0;
    return std::min(most, (last_x0 - x0) / g.horizontal.stride + 1);
  }

  /// Numbers [first, first + count) of the windows of `pixels` such pixels: what is contiguous in one is copied of all.
  void gather_inside(const Pixel& at, std::int64_t pixels, std::int64_t first, std::int64_t count, std::int64_t stride,
                     Number* to) const {
    const ConvGeometry& g = p_.g;
    const std::int64_t run = p_.taps_touch ? row_numbers() : p_.group_inputs;
    const std::int64_t pixel_step = g.horizontal.stride * g.x.w_stride;
    const Number* const window =
        x_ + g.x.offset(at.n, window_origin(g.vertical, at.y), window_origin(g.horizontal, at.x));
    for (std::int64_t k = first; k < first + count;) {
      const std::int64_t ky = k / p_.row;
      const std::int64_t at_row = k % p_.row;
      const std::int64_t kx = at_row / run;
      const std::int64_t begin = at_row % run;
      const bool behind = at_row >= row_numbers();
      const std::int64_t length = std::min(behind ? p_.row - at_row : run - begin, first + count - k);
      if (behind) {
        for (std::int64_t i = 0; i < pixels; ++i) std::fill_n(to + i * stride + k - first, length, outside_);
      } else {
        const Number* from =
            window + ky * g.vertical.dilation * g.x.h_stride + kx * g.horizontal.dilation * g.x.w_stride + begin;
        copy_numbers(pixels, length, from, pixel_step, to + k - first, stride);
      }
      k += length;
    }
  }

  /// The windows of `pixels` pixels that inner_pixels counts, and numbers behind them that mean nothing.
  void gather_inner(const Pixel& at, std::int64_t pixels, std::int64_t stride, Number* to) const {
    switch (loose_numbers() / kHalfLoose) {
      case 1: return gather_loose<1, kHalfLoose>(at, pixels, stride, to);
      case 2: return gather_loose<1, kLoose>(at, pixels, stride, to);
      case 4: return gather_loose<2, kLoose>(at, pixels, stride, to);
      case 6: return gather_loose<3, kLoose>(at, pixels, stride, to);
      case 8: return gather_loose<4, kLoose>(at, pixels, stride, to);
      default: return gather_loose<kMostLoose / kLoose, kLoose>(at, pixels, stride, to);
    }
  }

  /// The same of rows that are copied in `kCopies` of kCopied numbers.
  template <int kCopies, std::int64_t kCopied>
  void gather_loose(const Pixel& at, std::int64_t pixels, std::int64_t stride, Number* to) const {
    const ConvGeometry& g = p_.g;
    // Values of their own: bytes that are stored could be anything else.
    const std::int64_t row = p_.row;
    const std::int64_t step = g.vertical.dilation * g.x.h_stride;
    const std::int64_t pixel_step = g.horizontal.stride * g.x.w_stride;
    const Number* window = x_ + g.x.offset(at.n, window_origin(g.vertical, at.y), window_origin(g.horizontal, at.x));
    const auto gather_rows = [&](auto rows) {
      for (; pixels > 0; --pixels, window += pixel_step, to += stride) {
        const Number* from = window;
        Number* next = to;
        for (std::int32_t i = 0; i < rows; ++i, from += step, next += row)
          unrolled<kCopies>(
              [&](auto j) { std::memcpy(next + j * kCopied, from + j * kCopied, kCopied * sizeof(Number)); });
      }
    };
    // The usual number of rows without a loop.
    g.vertical.kernel == 3 ? gather_rows(std::integral_constant<std::int32_t, 3>()) : gather_rows(g.vertical.kernel);
  }

  const Problem& p_;
  const Number* x_;
  gemm::ByteForm form_;
  std::int64_t index_;
  Number outside_;
};

/// With rows of windows of whole quads, which may be segments of lines, where that adds no more than a twelfth to
/// products: numbers between rows mean nothing. Of weights without zero points only; windows of one row or column stay
/// as they are, since those of an image of one column lie (`lying`), which may be so at some sizes of an image only.
inline Problem with_whole_quads(const Problem& p) {
  const std::int64_t row = gemm::row_numbers(p.row);
  const std::int64_t quads = gemm::quad_count(p.k);
  const std::int64_t more = p.g.vertical.kernel * (row / 4) - quads;
  if (p.g.vertical.kernel == 1 || p.g.horizontal.kernel == 1 || p.g.horizontal.dilation != 1 || 12 * more > quads)
    return p;
  Problem result = p;
  result.row = row;
  result.k = p.g.vertical.kernel * row;
  return result;
}

/// Packs weights [OC,KH,KW,C/groups] with the bits of `flip` inverted, group after group.
inline void pack_windows(const Problem& p, const std::int8_t* w, std::uint8_t flip, std::int8_t* packed) {
  const std::int64_t row = p.g.horizontal.kernel * p.group_inputs;
  const std::int64_t k = p.g.vertical.kernel * row;
  for (std::int32_t group = 0; group < p.g.groups; ++group) {
    const std::int8_t* from = w + group * p.group_outputs * k;
    if (row == p.row) {
      gemm::pack_panels_i8(from, k, p.group_outputs, 1, k, flip, packed);
    } else {
      gemm::pack_panels_of(
          p.k, p.group_outputs,
          [&](std::int64_t i, std::int64_t n) {
            const std::int64_t at = i % p.row;
            return at < row ? static_cast<std::int8_t>(from[n * k + i / p.row * row + at] ^ flip) : std::int8_t{0};
          },
          packed);
    }
    packed += packed_window_bytes(p);
  }
}

/// The output pixels that one product takes.
struct ProductPixels {
  std::int64_t count = 0;
  bool overwritten = false;  ///< see Windows::rows
};

/// For how many pixels the lead of a result is kept that overlaps its operand: as many as products fetch in pieces.
inline constexpr std::int64_t kOverlapPixels = gemm::kMaxTileRows;

/// The next product's, of those from `index` to `end`. Several groups read the same pixels one after the other, so that
/// these must not be overwritten.
inline ProductPixels product_pixels(const Invocation& call, const Problem& p, std::int64_t index, std::int64_t end) {
  if (!p.y_uniform) end = std::min(end, index + p.g.y.w - index % p.g.y.w);
  const std::int64_t apart = pixels_at_once(call, p.g, index, kOverlapPixels);
  const std::int64_t most = gemm::most_block_rows(p.k);
  const std::int64_t count = gemm::block_rows(end - index, p.g.groups == 1 ? most : std::min(most, apart));
  return {count, count > apart};
}

/// Rows of results from pixel `at`, the index-th, to the end-th that products may take at once when their windows are
/// copied before.
inline std::int64_t rows_of_lines(const Invocation& call, const Problem& p, std::int64_t index, std::int64_t end,
                                  const Pixel& at) {
  const std::int64_t rows = std::min<std::int64_t>((end - index) / p.g.y.w, p.y_uniform ? p.g.y.h - at.y : 1);
  return std::min(rows, pixels_at_once(call, p.g, index, kOverlapPixels) / p.g.y.w);
}

/// Scratch of the integer matrix products of a convolution, for each thread; those of wider numbers than bytes get no
/// more.
inline gemm::ProductScratch product_scratch(const Problem& p) {
  const auto elements = [](const ImageShape& s) { return static_cast<std::int64_t>(s.n) * s.h * s.w * s.c; };
  const std::int64_t pixels = static_cast<std::int64_t>(p.g.y.n) * p.g.y.h * p.g.y.w;
  const std::int64_t weights = p.k * p.g.y.c;
  return gemm::product_scratch(pixels, p.k, elements(p.g.x) + elements(p.g.y) + weights);
}

/// The scratch of one slot.
inline gemm::Workspace workspace(const Invocation& call, std::int64_t slot, std::int64_t reserved = 0) {
  const std::int64_t bytes = slot_scratch_bytes(call, reserved);
  return {reinterpret_cast<std::int16_t*>(call.scratch + reserved + slot * bytes),
          bytes / static_cast<std::int64_t>(sizeof(std::int16_t))};
}

/// Calls multiply(group, rows, panels, first output pixel) for products that make up the output pixels [begin, end) of
/// an application whose image is x, of `packed` weights. `in_lines`: may they take lines? These are put into the
/// workspace, which the products use otherwise.
template <typename Number, typename Multiply>
void for_each_block(const Invocation& call, const Problem& p, const Number* x, gemm::ByteForm form,
                    const std::int8_t* packed, const gemm::Workspace& workspace, bool in_lines, std::int64_t begin,
                    std::int64_t end, Multiply multiply) {
  const LineWeights line_weights(p, packed, in_lines && sizeof(Number) == 1, end - begin);
  const ImageLines lines(line_weights.problem(), form, workspace);
  const std::int64_t most_rows = line_weights.serve() ? lines.rows_at_once() : 0;
  for (std::int64_t index = begin; index < end;) {
    const Pixel at = pixel_at(p.g.y, index);
    if constexpr (sizeof(Number) == 1) {
      const bool may_take = most_rows > 0 && at.x == 0;
      const std::int64_t rows = may_take ? std::min(most_rows, rows_of_lines(call, p, index, end, at)) : 0;
      if (rows > 0) {
        for (std::int32_t group = 0; group < p.g.groups; ++group)
          multiply(group, lines.copy(x + group * p.group_inputs, at, rows), line_weights.of(group), at);
        index += rows * p.g.y.w;
        continue;
      }
    }
    const auto [count, overwritten] =
        product_pixels(call, p, index, most_rows > 0 ? std::min(end, index + p.g.y.w - at.x) : end);
    for (std::int32_t group = 0; group < p.g.groups; ++group) {
      const Windows<Number> windows(p, x + group * p.group_inputs, form, index);
      multiply(group, windows.rows(count, overwritten), all_panels(p, packed + group * packed_window_bytes(p)), at);
    }
    index += count;
  }
}

}  // namespace bantam::ops::conv2d
