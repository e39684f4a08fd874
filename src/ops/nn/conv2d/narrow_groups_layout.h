// How the kernels of narrow groups (narrow_groups.h) lay out spread pixels and packed weights, and how they share the
// work. Units count alike, whatever their numbers.
#pragma once

#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/narrow_groups.h"

namespace bantam::ops::narrow_groups {

/// Image rows from the first to the last tap of a window.
inline std::int64_t window_span(const WindowAxis& axis) {
  return static_cast<std::int64_t>(axis.kernel - 1) * axis.dilation + 1;
}

/// Rows that are kept spread: those of a window, in a ring.
inline std::int64_t ring_rows(const Problem& p) {
  return std::max<std::int64_t>(std::min<std::int64_t>(window_span(p.g.vertical), p.g.x.h), 1);
}

inline std::int64_t spread_columns(const Problem& p, std::int64_t columns) {
  return (columns - 1) * p.g.horizontal.stride + window_span(p.g.horizontal);
}

/// Groups of one block: of those with few outputs as many whole ones as have room, and whose units have.
inline std::int64_t block_groups(const Problem& p) {
  return std::max<std::int64_t>(kBlock / std::max(p.outputs, p.units()), 1);
}

/// Blocks of one group, of which the last one may be partly empty.
inline std::int64_t group_blocks(const Problem& p) { return (p.outputs + kBlock - 1) / kBlock; }

inline std::int64_t block_count(const Problem& p) {
  const std::int64_t groups = p.g.y.c / p.outputs;
  return (groups + block_groups(p) - 1) / block_groups(p) * group_blocks(p);
}

/// Output channels [first, first + count), and the first channel of the image that they see.
struct Block {
  std::int64_t first;
  std::int64_t count;
  std::int64_t input;
};

inline Block block_at(const Problem& p, std::int64_t index) {
  const std::int64_t group = index / group_blocks(p) * block_groups(p);
  const std::int64_t part = index % group_blocks(p) * kBlock;
  const std::int64_t outputs = std::min(group + block_groups(p), p.g.y.c / p.outputs) * p.outputs;
  return {.first = group * p.outputs + part,
          .count = std::min(outputs - group * p.outputs - part, kBlock),
          .input = group * p.inputs};
}

/// Channels of the image that a block sees.
inline std::int64_t block_inputs(const Problem& p, const Block& block) {
  return (block.count + p.outputs - 1) / p.outputs * p.inputs;
}

/// The most units of one pixel in the ring: those of each lane, unless all lanes belong to one group. Of 8-bit images
/// some processors want pairs of inputs in 16 bits.
inline std::int64_t pixel_units(const Problem& p) {
  const std::int64_t units = p.unit == 1 ? p.inputs : (p.inputs + 1) / 2;
  return block_groups(p) == 1 ? units : units * kBlock;
}

/// Scratch of a thread for so many columns of results.
inline std::int64_t ring_bytes(const Problem& p, std::int64_t columns) {
  return align_up(ring_rows(p) * spread_columns(p, columns) * pixel_units(p) * kUnitBytes, kAlignment);
}

/// The most columns of results, at least one, for which so many bytes suffice.
inline std::int64_t columns_within(const Problem& p, std::int64_t bytes) {
  const std::int64_t width = bytes / (ring_rows(p) * pixel_units(p) * kUnitBytes);
  return std::clamp<std::int64_t>((width - window_span(p.g.horizontal)) / p.g.horizontal.stride + 1, 1, p.g.y.w);
}

/// Units of the weights of a block's kernel rows.
inline std::int64_t weight_units(const Problem& p) {
  return static_cast<std::int64_t>(p.g.vertical.kernel) * p.g.horizontal.kernel * p.units() * kBlock;
}

/// Units of a block: its weights, and the sums of those of each kernel row where images have 8 bits.
inline std::int64_t block_units(const Problem& p) {
  return weight_units(p) + (p.unit == 1 ? 0 : p.g.vertical.kernel * kBlock);
}

/// Calls put(row, lane, weight) for the weights of a block in the order of their packed form, kernel row after kernel
/// row; null stands for zero.
template <typename Weight, typename Put>
void for_each_weight(const Problem& p, const Block& block, const WeightStrides& strides, const Weight* weights,
                     Put put) {
  const std::int64_t columns = p.g.horizontal.kernel;
  for (std::int64_t tap = 0; tap < p.g.vertical.kernel * columns; ++tap)
    for (std::int64_t unit = 0; unit < p.units() * p.unit; unit += p.unit)
      for (std::int64_t lane = 0; lane < kBlock; ++lane)
        for (std::int64_t input = unit; input < unit + p.unit; ++input) {
          const std::int64_t at = (block.first + lane) * strides.output + tap * strides.tap + input * strides.input;
          put(tap / columns, lane, lane < block.count && input < p.inputs ? weights + at : nullptr);
        }
}

/// Rows [begin, end) of one item and block, in parts of so many columns.
struct Part {
  std::int64_t item;
  std::int64_t block;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t columns;
};

/// Rows of results whose image and results stay in the second-level cache while one block after another passes over
/// them; at least some, because the first windows of a band are spread once more for each block. A large enough
/// image is cut for the threads where all of it would stay: most operators share rows, and then each processor has what
/// it needs.
inline std::int64_t band_rows(const Problem& p, std::int64_t threads) {
  constexpr std::int64_t kCacheBytes = 512 * 1024;
  const std::int64_t image = static_cast<std::int64_t>(p.g.x.w) * p.g.x.c * p.g.vertical.stride;
  const std::int64_t result = static_cast<std::int64_t>(p.g.y.w) * p.g.y.c;
  const std::int64_t rows = kCacheBytes / ((image + result) * kUnitBytes / p.unit);
  const std::int64_t band = std::clamp<std::int64_t>(rows, 2 * ring_rows(p), p.g.y.h);
  const std::int64_t share = (p.g.y.h - 1) / std::max<std::int64_t>(threads, 1) + 1;
  return share < 2 * ring_rows(p) ? band : std::min(share, band);
}

/// Calls convolve(part, ring) for parts that make up the result, on all threads.
template <typename Convolve>
void for_each_part(const Invocation& call, const Problem& p, Convolve convolve) {
  const std::int64_t slot_bytes = slot_scratch_bytes(call);
  // Of rows that are cut all parts are about as long.
  const std::int64_t parts = (p.g.y.w - 1) / columns_within(p, slot_bytes) + 1;
  const std::int64_t columns = (p.g.y.w - 1) / parts + 1;
  const std::int64_t height = p.g.y.h;
  const std::int64_t rows = band_rows(p, call.threads->count);
  const std::int64_t blocks = block_count(p);
  // Tasks of at least some ten thousand multiply-adds, and of a few rows, whose first windows are spread for each.
  const std::int64_t row_work = p.g.y.w * block_units(p);
  const std::int64_t grain = std::max<std::int64_t>(50'000 / row_work, 2 * ring_rows(p));
  // Rows count item after item, band after band, block after block.
  parallel_slots(*call.threads, p.g.y.n * blocks * height, grain,
                 [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                   for (std::int64_t at = begin; at < end;) {
                     const std::int64_t item = at / (blocks * height);
                     const std::int64_t band = (at - item * blocks * height) / (blocks * rows) * rows;
                     const std::int64_t here = std::min(rows, height - band);
                     const std::int64_t from = at - (item * height + band) * blocks;
                     const std::int64_t row = from % here;
                     const std::int64_t count = std::min(here - row, end - at);
                     convolve(Part{.item = item,
                                   .block = from / here,
                                   .begin = band + row,
                                   .end = band + row + count,
                                   .columns = columns},
                              call.scratch + slot * slot_bytes);
                     at += count;
                   }
                 });
}

}  // namespace bantam::ops::narrow_groups
