#include <algorithm>
#include <cstring>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/bands.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::conv2d {
namespace {

constexpr std::int64_t kFloat = sizeof(float);

/// Rows and columns of results that are computed from one copy.
struct BlockShape {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};

/// Rows or columns of the image that so many results along an axis need.
std::int64_t span(const WindowAxis& axis, std::int64_t results) {
  return (results - 1) * axis.stride + static_cast<std::int64_t>(axis.kernel - 1) * axis.dilation + 1;
}

std::int64_t copied_floats(const ConvGeometry& g, const BlockShape& shape) {
  return span(g.vertical, shape.rows) * span(g.horizontal, shape.columns) * g.x.c;
}

/// The most results along an axis whose span is at most `length`, between 1 and `most`.
std::int64_t results_within(const WindowAxis& axis, std::int64_t length, std::int64_t most) {
  return std::clamp<std::int64_t>((length - span(axis, 1)) / axis.stride + 1, 1, most);
}

/// Columns of the narrowest block that is worth copying: two tiles of the matrix product.
std::int64_t least_columns(const ConvGeometry& g) { return std::min<std::int64_t>(g.y.w, 2 * gemm::kMaxTileRows); }

/// Whole rows of results if a few fit into so many floats, otherwise parts of rows, alike and as few as leave room for
/// a few rows; no columns if too few fit.
BlockShape block_shape(const ConvGeometry& g, std::int64_t floats, std::int64_t most_rows) {
  constexpr std::int64_t kFewRows = 2;
  std::int64_t columns = g.y.w;
  if (most_rows >= kFewRows) {
    const std::int64_t fitting = results_within(g.horizontal, floats / (span(g.vertical, kFewRows) * g.x.c), columns);
    const std::int64_t widest = std::max(fitting, least_columns(g));
    const std::int64_t parts = (columns + widest - 1) / widest;
    columns = (columns + parts - 1) / parts;
  }
  if (copied_floats(g, {1, columns}) > floats)
    columns = results_within(g.horizontal, floats / (span(g.vertical, 1) * g.x.c), columns);
  if (columns < least_columns(g) || copied_floats(g, {1, columns}) > floats) return {0, 0};
  const std::int64_t length = floats / (span(g.horizontal, columns) * g.x.c);
  return {results_within(g.vertical, length, most_rows), columns};
}

/// Results [row, row + shape.rows) x [column, column + shape.columns) of one item.
struct Block {
  std::int64_t item = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
  BlockShape shape;
};

/// All blocks of the results, row after row.
class Blocks {
 public:
  Blocks(const ImageShape& y, const BlockShape& shape)
      : y_(y),
        shape_(shape),
        down_((y.h + shape.rows - 1) / shape.rows),
        across_((y.w + shape.columns - 1) / shape.columns) {}

  std::int64_t count() const { return y_.n * down_ * across_; }

  Block at(std::int64_t index) const {
    const std::int64_t band = index / across_;
    Block block{band / down_, band % down_ * shape_.rows, index % across_ * shape_.columns, shape_};
    block.shape.rows = std::min(shape_.rows, y_.h - block.row);
    block.shape.columns = std::min(shape_.columns, y_.w - block.column);
    return block;
  }

 private:
  const ImageShape& y_;
  BlockShape shape_;
  std::int64_t down_;
  std::int64_t across_;
};

/// Copies columns [first, first + count) of row `iy`, zero outside the image. All channels of x.
void copy_row(const ImageShape& x, const float* image, std::int64_t iy, std::int64_t first, std::int64_t count,
              float* to) {
  const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, count);
  const std::int64_t end = iy < 0 || iy >= x.h ? begin : std::clamp<std::int64_t>(x.w - first, begin, count);
  std::fill_n(to, begin * x.c, 0.0F);
  if (begin < end) {
    const float* from = image + iy * x.h_stride + (first + begin) * x.w_stride;
    if (x.w_stride == x.c) {
      std::memcpy(to + begin * x.c, from, static_cast<std::size_t>((end - begin) * x.c * kFloat));
    } else {
      for (std::int64_t i = begin; i < end; ++i, from += x.w_stride)
        for (std::int64_t c = 0; c < x.c; ++c) to[i * x.c + c] = from[c];
    }
  }
  std::fill_n(to + end * x.c, (count - end) * x.c, 0.0F);
}

/// What of the image a block needs, dense.
void copy_block(const ConvGeometry& g, const float* x, const Block& block, float* to) {
  const std::int64_t columns = span(g.horizontal, block.shape.columns);
  const std::int64_t y0 = window_origin(g.vertical, block.row);
  const std::int64_t x0 = window_origin(g.horizontal, block.column);
  const std::int64_t rows = span(g.vertical, block.shape.rows);
  for (std::int64_t i = 0; i < rows; ++i, to += columns * g.x.c)
    copy_row(g.x, x + block.item * g.x.n_stride, y0 + i, x0, columns, to);
}

/// An image from its first needed pixel on, all channels of a pixel together.
struct Source {
  const float* data = nullptr;
  std::int64_t row = 0;    ///< floats from one row to the next
  std::int64_t pixel = 0;  ///< and from one pixel to the next
};

/// Multiplies the windows of a block, row after row or, where rows are shorter than a tile, column after column.
void multiply_block(const Problem& p, const Source& x, const gemm::RightPanels& weights, gemm::Result y,
                    const Block& block) {
  const ConvGeometry& g = p.g;
  const bool upright = block.shape.columns < gemm::kMaxTileRows && block.shape.rows > block.shape.columns;
  const std::int64_t down = g.vertical.stride * x.row;
  const std::int64_t across = g.horizontal.stride * x.pixel;
  gemm::LeftRows windows{
      .data = x.data,
      .rows = upright ? block.shape.rows : block.shape.columns,
      .row_stride = upright ? down : across,
      .outer = g.vertical.kernel,
      .outer_stride = g.vertical.dilation * x.row,
      .segments = g.horizontal.kernel,
      .segment_stride = g.horizontal.dilation * x.pixel,
      .length = g.x.c,
  };
  if (windows.segment_stride == g.x.c) {
    windows.length *= windows.segments;
    windows.segments = 1;
  }
  y.data += g.y.offset(block.item, block.row, block.column);
  y.row_stride = upright ? g.y.h_stride : g.y.w_stride;
  const std::int64_t runs = upright ? block.shape.columns : block.shape.rows;
  for (std::int64_t i = 0; i < runs; ++i) {
    multiply(windows, weights, y);
    windows.data += upright ? across : down;
    y.data += upright ? g.y.w_stride : g.y.h_stride;
  }
}

bool is_padded(const ConvGeometry& g) {
  return g.vertical.pad_before != 0 || g.vertical.pad_after != 0 || g.horizontal.pad_before != 0 ||
         g.horizontal.pad_after != 0;
}

/// Where windows stay inside the image, it is read in place: the whole result is one block for each thread, a part of a
/// row where there are fewer rows than threads. A result that overlaps x is computed row by row.
BlockShape shape_of(const ConvGeometry& g, std::int64_t floats, std::int64_t threads, bool overlaps) {
  const std::int64_t tile_rows = std::max<std::int64_t>(gemm::kMaxTileRows / g.y.w, 1);
  const std::int64_t most_rows = overlaps ? std::min<std::int64_t>(tile_rows, g.y.h) : (g.y.h + threads - 1) / threads;
  if (is_padded(g)) return block_shape(g, floats, most_rows);
  const std::int64_t parts = overlaps ? 1 : std::max<std::int64_t>(threads / std::max(g.y.h, 1), 1);
  return {most_rows, std::min<std::int64_t>(align_up((g.y.w + parts - 1) / parts, gemm::kMaxTileRows), g.y.w)};
}

/// What the windows of a block read: a copy, unless they all lie inside the image.
Source source_of(const ConvGeometry& g, const float* x, const Block& block, float* copy) {
  if (!is_padded(g)) {
    const std::int64_t from =
        g.x.offset(block.item, window_origin(g.vertical, block.row), window_origin(g.horizontal, block.column));
    return {x + from, g.x.h_stride, g.x.w_stride};
  }
  copy_block(g, x, block, copy);
  return {copy, span(g.horizontal, block.shape.columns) * g.x.c, g.x.c};
}

}  // namespace

bool bands_apply(const Problem& p) {
  constexpr std::int64_t kFarTaps = 32;
  const WindowAxis& down = p.g.vertical;
  const WindowAxis& across = p.g.horizontal;
  const bool shared = down.stride <= down.kernel && across.stride <= across.kernel;
  const bool close =
      (down.dilation == 1 || span(down, 1) <= kFarTaps) && (across.dilation == 1 || span(across, 1) <= kFarTaps);
  // Reading many weights again for every row of results costs more than gathering windows.
  return shared && close && p.g.groups == 1 && !p.always_inside && !has_many_weights(p);
}

std::int64_t bands_useful_bytes(const Problem& p) {
  if (!is_padded(p.g)) return 0;
  // Copies that stay in the first-level cache together with some weights and results; a tile's if that is more.
  constexpr std::int64_t kUsefulFloats = 8192;
  const std::int64_t least = copied_floats(p.g, {1, least_columns(p.g)});
  const BlockShape shape = block_shape(p.g, std::max(kUsefulFloats, least), p.g.y.h);
  return align_up(copied_floats(p.g, shape) * kFloat, kAlignment);
}

bool run_bands(const Invocation& call, const Problem& p) {
  const ConvGeometry& g = p.g;
  const gemm::RightPanels weights{call.input<float>(1), p.group_outputs, 0, gemm::panel_count(p.group_outputs)};
  const gemm::Result y{.data = call.output<float>(),
                       .bias = optional_input<float>(call, 2),
                       .activation = call.as<Conv2dParams>().activation};
  const std::int64_t slot_bytes = slot_scratch_bytes(call);
  const std::int64_t threads = std::max<std::int32_t>(call.threads->count, 1);
  const BlockShape shape = shape_of(g, slot_bytes / kFloat, threads, result_overlaps(call));
  if (shape.columns == 0) return false;
  const Blocks blocks(g.y, shape);
  constexpr std::int64_t kTaskWork = 100'000;
  const std::int64_t grain = kTaskWork / (shape.rows * shape.columns * p.k * p.group_outputs) + 1;
  parallel_slots(*call.threads, blocks.count(), grain, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
    auto* copy = reinterpret_cast<float*>(call.scratch + slot * slot_bytes);
    for (std::int64_t i = begin; i < end; ++i) {
      const Block block = blocks.at(i);
      multiply_block(p, source_of(g, call.input<float>(0), block, copy), weights, y, block);
    }
  });
  return true;
}

}  // namespace bantam::ops::conv2d
