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

/// Do all lanes of a block belong to one group? Its inputs are then copied in their order, and broadcast when
/// multiplied.
inline bool shares_inputs(const Problem& p) { return p.outputs % kBlock == 0; }

/// Of one pixel in the ring.
inline std::int64_t pixel_units(const Problem& p) { return shares_inputs(p) ? p.units() : p.units() * kBlock; }

/// Scratch of a thread for so many columns of results.
inline std::int64_t ring_bytes(const Problem& p, std::int64_t columns) {
  return align_up(ring_rows(p) * spread_columns(p, columns) * pixel_units(p) * kUnitBytes, kAlignment);
}

/// The most columns of results, at least one, for which so many bytes suffice.
inline std::int64_t columns_within(const Problem& p, std::int64_t bytes) {
  const std::int64_t width = bytes / (ring_rows(p) * pixel_units(p) * kUnitBytes);
  return std::clamp<std::int64_t>((width - window_span(p.g.horizontal)) / p.g.horizontal.stride + 1, 1, p.g.y.w);
}

inline std::int64_t block_count(const Problem& p) { return (p.g.y.c + kBlock - 1) / kBlock; }

/// Units of the weights of a block.
inline std::int64_t block_units(const Problem& p) {
  return static_cast<std::int64_t>(p.g.vertical.kernel) * p.g.horizontal.kernel * p.units() * kBlock;
}

/// Packs weights, of which convert(weight) gives the numbers that are multiplied.
template <typename Weight, typename Number, typename Convert>
void pack_units(const Problem& p, const WeightStrides& strides, const Weight* weights, Number* packed,
                Convert convert) {
  const std::int64_t taps = static_cast<std::int64_t>(p.g.vertical.kernel) * p.g.horizontal.kernel;
  for (std::int64_t first = 0; first < p.g.y.c; first += kBlock)
    for (std::int64_t tap = 0; tap < taps; ++tap)
      for (std::int64_t unit = 0; unit < p.units() * p.unit; unit += p.unit)
        for (std::int64_t output = first; output < first + kBlock; ++output)
          for (std::int64_t input = unit; input < unit + p.unit; ++input)
            *packed++ = output < p.g.y.c && input < p.inputs
                            ? convert(weights[output * strides.output + tap * strides.tap + input * strides.input])
                            : Number{};
}

/// Rows [begin, end) of one item and block, in parts of so many columns.
struct Part {
  std::int64_t item;
  std::int64_t block;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t columns;
};

/// Calls convolve(part, ring) for parts that make up the result, on all threads.
template <typename Convolve>
void for_each_part(const Invocation& call, const Problem& p, Convolve convolve) {
  const std::int64_t slot_bytes = slot_scratch_bytes(call);
  const std::int64_t columns = columns_within(p, slot_bytes);
  const std::int64_t rows = p.g.y.h;
  const std::int64_t blocks = block_count(p);
  // Tasks of at least some ten thousand multiply-adds, and of a few rows, whose first windows are spread for each.
  const std::int64_t row_work = p.g.y.w * block_units(p);
  const std::int64_t grain = std::max<std::int64_t>(50'000 / row_work, 2 * ring_rows(p));
  parallel_slots(*call.threads, p.g.y.n * blocks * rows, grain,
                 [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                   for (std::int64_t at = begin; at < end;) {
                     const std::int64_t band = at / rows;
                     const std::int64_t next = std::min(end, (band + 1) * rows);
                     convolve(Part{.item = band / blocks,
                                   .block = band % blocks,
                                   .begin = at - band * rows,
                                   .end = next - band * rows,
                                   .columns = columns},
                              call.scratch + slot * slot_bytes);
                     at = next;
                   }
                 });
}

}  // namespace bantam::ops::narrow_groups
