// What the Winograd kernels of convolutions share: F(4x4, 3x3) and F(2x2, 3x3) of Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2016. A tile of 4x4 results takes 36 products per pair of channels instead of 144,
// one of 2x2 16 instead of 36, with less than half of the weights. Tiles of 6x6 or 4x4 pixels are transformed, as many
// matrix products multiply a block of tiles by weights that were transformed when they were packed, and the products
// are transformed back.
//
// A convolution with dilation d is d * d ones without, each of every d-th row and column. One with stride 2 is the sum
// of four, of even and odd rows and columns: along an axis the outer taps meet every second pixel, as F(r, 2) with
// r + 1 products for r results, and the middle tap meets those between, whose r products all take the same weight. So
// 4x4 results take 81 products instead of 144, 2x2 ones 25 instead of 36, with as many weights as with stride 1.
//
// Here are the tiles, the memory of a block and the order of work; the kernels bring the arithmetic. Freestanding;
// nothing is allocated.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::conv2d::winograd {

inline constexpr int kTaps = 3;

/// Rows and columns of results that a tile gives; few where weights are many for what they give.
inline constexpr int kResults = 4;
inline constexpr int kFewResults = 2;

/// A form of the method. Rows and columns are alike.
struct Form {
  int results = kResults;
  int stride = 1;  ///< or 2

  /// Rows of the image that a tile reads, and products along an axis.
  constexpr int tile() const noexcept { return (results - 1) * stride + kTaps; }
  /// Weights along an axis: each belongs to one product, but with stride 2 the last one to `results` of them.
  constexpr int points() const noexcept { return results + kTaps - 1; }

  constexpr int products() const noexcept { return tile() * tile(); }
  constexpr int weights() const noexcept { return points() * points(); }

  /// Products along an axis that take weight i.
  constexpr int sharing(int i) const noexcept { return i == points() - 1 ? tile() - i : 1; }

  /// The index of product (row, column): those of the same weight follow each other, the first is that of the weight.
  constexpr int product(int row, int column) const noexcept {
    const int i = std::min(row, points() - 1);
    const int j = std::min(column, points() - 1);
    return i * tile() + j * sharing(i) + (row - i) * sharing(j) + (column - j);
  }

  constexpr bool operator==(const Form&) const noexcept = default;
};

/// The form in which bytes are computed.
inline constexpr int kTile = Form{}.tile();
inline constexpr int kProducts = Form{}.products();

/// Tiles of a block: at least enough for products of some height, or all that there are.
inline constexpr std::int64_t kLeastTiles = 6;
inline constexpr std::int64_t kUsefulTiles = 4 * gemm::kMaxTileRows;

/// Tiles of results along one axis: those of positions 0, dilation, 2 * dilation and so on, then those that begin at
/// position 1, and so on.
struct AxisTiles {
  std::int64_t dilation = 1;
  std::int64_t of_tile = 0;
  std::int64_t of_phase = 0;
  std::int64_t count = 0;

  AxisTiles(const WindowAxis& axis, std::int64_t size, int results)
      : dilation(axis.dilation),
        of_tile(results),
        of_phase((size + of_tile * dilation - 1) / (of_tile * dilation)),
        count(of_phase * std::min(dilation, size)) {}

  /// Of a tile's first result; beyond the others where the last phases have fewer.
  std::int64_t position(std::int64_t tile) const noexcept {
    return tile % of_phase * of_tile * dilation + tile / of_phase;
  }
  /// Of the tile whose first result lies there, among `size` positions.
  std::int64_t results(std::int64_t position, std::int64_t size) const noexcept {
    return std::clamp<std::int64_t>((size - position + dilation - 1) / dilation, 0, of_tile);
  }
};

/// Tiles of results of one batch, from left to right, row after row, item after item.
struct Tiles {
  ConvGeometry g;
  Form form;
  AxisTiles rows;     ///< of one item
  AxisTiles columns;  ///< of one row

  explicit Tiles(const ConvGeometry& geometry, const Form& tile_form = {})
      : g(geometry),
        form(tile_form),
        rows(geometry.vertical, geometry.y.h, form.results),
        columns(geometry.horizontal, geometry.y.w, form.results) {}

  std::int64_t count() const noexcept { return g.y.n * rows.count * columns.count; }
};

struct TilePlace {
  std::int64_t n = 0;
  std::int64_t y = 0;  ///< of its first result
  std::int64_t x = 0;
};

inline TilePlace place_of(const Tiles& tiles, std::int64_t index) noexcept {
  const std::int64_t row = index / tiles.columns.count;
  return {row / tiles.rows.count, tiles.rows.position(row % tiles.rows.count),
          tiles.columns.position(index % tiles.columns.count)};
}

/// What the tile at `place` sees of the image.
struct TileImage {
  std::int64_t first;  ///< offset of its first pixel, which may lie outside the image
  std::int64_t row_stride;
  std::int64_t column_stride;
  TapRange rows;  ///< that lie inside
  TapRange columns;
  int size;

  TileImage(const ConvGeometry& g, const TilePlace& place, int tile = kTile) noexcept
      : row_stride(g.vertical.dilation * g.x.h_stride),
        column_stride(g.horizontal.dilation * g.x.w_stride),
        size(tile) {
    const std::int64_t y0 = window_origin(g.vertical, place.y);
    const std::int64_t x0 = window_origin(g.horizontal, place.x);
    first = g.x.offset(place.n, y0, x0);
    rows = taps_inside({.kernel = size, .dilation = g.vertical.dilation}, y0, 0, g.x.h);
    columns = taps_inside({.kernel = size, .dilation = g.horizontal.dilation}, x0, 0, g.x.w);
  }

  bool whole() const noexcept { return rows.size() == size && columns.size() == size; }
  bool has(int row, int column) const noexcept {
    return row >= rows.first && row < rows.last && column >= columns.first && column < columns.last;
  }
  std::int64_t offset(std::int64_t row, std::int64_t column) const noexcept {
    return first + row * row_stride + column * column_stride;
  }
};

/// Where the results of the tile at `place` are.
struct TileResults {
  std::int64_t rows;  ///< at most as many as a tile has
  std::int64_t columns;
  std::int64_t first;  ///< offset of the first of them
  std::int64_t row_stride;
  std::int64_t column_stride;

  TileResults(const Tiles& tiles, const TilePlace& place) noexcept
      : rows(tiles.rows.results(place.y, tiles.g.y.h)),
        columns(tiles.columns.results(place.x, tiles.g.y.w)),
        first(tiles.g.y.offset(place.n, place.y, place.x)),
        row_stride(tiles.rows.dilation * tiles.g.y.h_stride),
        column_stride(tiles.columns.dilation * tiles.g.y.w_stride) {}

  /// None where a dilated convolution's last phases have fewer tiles.
  bool any() const noexcept { return rows > 0 && columns > 0; }
};

/// A line between the products of a block: without, those of a tile may lie so many bytes apart that they all meet in
/// one set, or in few, of a first-level cache of 64 sets, and displace each other.
inline constexpr std::int64_t kGapBytes = 64;

/// Bytes of the gaps of so many matrices for each product. With a stride of 2 there are none: products that share a
/// weight are one matrix.
constexpr std::int64_t gap_bytes(const Form& form, std::int64_t matrices) noexcept {
  return form.stride == 1 ? matrices * form.products() * kGapBytes : 0;
}

/// Where the numbers of a block of tiles lie: product after product, tile after tile, channel after channel.
template <typename Number>
struct BlockMemory {
  Number* numbers = nullptr;
  std::int64_t tiles = 0;  ///< that it has room for
  std::int64_t channels = 0;
  std::int64_t gap = 0;  ///< numbers between products

  /// With gaps where it has room for them and products would meet in a quarter of the sets or fewer.
  BlockMemory(Number* first, std::int64_t tile_count, std::int64_t channel_count, bool has_room) noexcept
      : numbers(first), tiles(tile_count), channels(channel_count) {
    constexpr auto kNumber = static_cast<std::int64_t>(sizeof(Number));
    if (has_room && tiles * channels * kNumber % (16 * kGapBytes) == 0) gap = kGapBytes / kNumber;
  }

  Number* at(std::int64_t product, std::int64_t tile) const noexcept {
    return numbers + (product * tiles + tile) * channels + product * gap;
  }
};

/// 3x3 with strides of 1, or of up to `most_stride` without dilation, one group, whole panels of channels.
inline bool fits(const Conv2dParams& p, const TensorDesc& w, int most_stride = 1) noexcept {
  const bool has_form = p.stride_h == 1 || (p.stride_h <= most_stride && p.dilation_h == 1 && p.dilation_w == 1);
  return w.dims[1] == kTaps && w.dims[2] == kTaps && p.stride_h == p.stride_w && has_form && p.groups == 1 &&
         w.dims[0] % gemm::kPanel == 0 && w.dims[3] % gemm::kPanel == 0;
}

/// Tiles of `results` rows and columns of an item of rows x columns; dilations as in Conv2dParams.
inline std::int64_t tiles_of_item(const Conv2dParams& p, std::int64_t rows, std::int64_t columns,
                                  int results) noexcept {
  return AxisTiles({.kernel = kTaps, .dilation = p.dilation_h}, rows, results).count *
         AxisTiles({.kernel = kTaps, .dilation = p.dilation_w}, columns, results).count;
}

/// Footprint::lead_bytes: a block reads all its tiles before it writes, and rows of tiles share rows of the image.
inline std::int64_t lead_bytes(const OpCall& call, const Tiles& tiles, int threads) noexcept {
  const ConvGeometry& g = tiles.g;
  if (!can_overlap(call, threads) || g.y.n != 1 || g.vertical.dilation != 1) return Footprint::kNoOverlap;
  const std::int64_t x_row = static_cast<std::int64_t>(g.x.w) * g.x.c * element_size(call.in(0).type);
  const std::int64_t y_row = static_cast<std::int64_t>(g.y.w) * g.y.c * element_size(call.out().type);
  const std::int64_t tile_rows = (g.y.h + tiles.form.results - 1) / tiles.form.results;
  std::int64_t lead = y_row;
  // Linear but for the image's edges.
  for (const std::int64_t row : {std::int64_t{0}, std::int64_t{1}, tile_rows - 2, tile_rows - 1}) {
    const std::int64_t tile_row = std::clamp<std::int64_t>(row, 0, tile_rows - 1);
    const std::int64_t written = std::min<std::int64_t>((tile_row + 1) * tiles.form.results, g.y.h);
    const std::int64_t read =
        std::clamp<std::int64_t>(window_origin(g.vertical, tile_row * tiles.form.results), 0, g.x.h);
    lead = std::max(lead, written * y_row - read * x_row);
  }
  return lead < call.out().bytes() ? lead : Footprint::kNoOverlap;
}

/// Tiles of a block, at least: products of few columns need more rows for as many sums, which may take a small share of
/// the memory that operand and result have.
inline std::int64_t least_tiles(const OpCall& call, std::int64_t channels, std::int64_t tile_bytes) noexcept {
  constexpr std::int64_t kShare = 32;
  const std::int64_t enough = (channels <= 16 ? 3 : channels <= 48 ? 2 : 1) * kLeastTiles;
  const std::int64_t affordable = (call.in(0).bytes() + call.out().bytes()) / kShare / tile_bytes;
  return std::clamp(affordable, kLeastTiles, enough);
}

/// Of a kernel that needs `tile_bytes` per tile, can use gaps and has so many bytes of weights: blocks are useful as
/// long as they stay in the second-level cache, longer where weights would be read for them again. Never less than two
/// tiles, nor than a block of its own for each thread: threads that share a small one wait for each other more than
/// they compute.
inline Footprint footprint(const OpCall& call, const Tiles& tiles, std::int64_t tile_bytes, std::int64_t gaps,
                           std::int64_t weight_bytes, int threads) noexcept {
  constexpr std::int64_t kCacheBytes = 1 << 20;
  const std::int64_t block_bytes = std::max(kCacheBytes, weight_bytes / 4);
  const std::int64_t fitting = block_bytes / tile_bytes / kLeastTiles * kLeastTiles;
  const std::int64_t all = std::max<std::int64_t>(tiles.count(), 2);
  const std::int64_t least = least_tiles(call, tiles.g.y.c, tile_bytes);
  const std::int64_t useful = std::min(std::clamp(fitting, least, kUsefulTiles) * threads, all);
  return {.scratch_bytes = std::min(least * threads, all) * tile_bytes,
          .useful_scratch_bytes = useful * tile_bytes + gaps * threads,
          .lead_bytes = lead_bytes(call, tiles, threads)};
}

/// Items of so many numbers to compute at least in one go: a few microseconds, so that little work wakes no thread.
constexpr std::int64_t grain_of(std::int64_t numbers) noexcept { return std::max<std::int64_t>(32768 / numbers, 1); }

/// Some tiles and the memory in which to compute them, so many of them at once.
struct Share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::byte* memory = nullptr;
  std::int64_t at_once = 0;
  bool has_gaps = false;  ///< room for them

  /// Calls f(first tile, count) for blocks of about equal size.
  template <typename F>
  void for_each_block(F f) const {
    const std::int64_t blocks = (end - begin + at_once - 1) / at_once;
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::int64_t first = begin + (end - begin) * i / blocks;
      f(first, begin + (end - begin) * (i + 1) / blocks - first);
    }
  }
};

/// Calls compute(threads, share): each thread has tiles of its own where there is scratch for a block of each thread,
/// and it costs less that each reads all weights than that threads hand over what they transform; otherwise all threads
/// share the work within blocks. Requires the scratch of `footprint`.
template <typename Compute>
void share_tiles(const Invocation& call, const Tiles& tiles, std::int64_t tile_bytes, std::int64_t gaps,
                 std::int64_t weight_bytes, Compute compute) {
  const auto at_once = [&](std::int64_t bytes, std::int64_t most) {
    const std::int64_t fit = bytes / tile_bytes;
    if (fit >= most) return most;
    return fit < kLeastTiles ? fit : fit / kLeastTiles * kLeastTiles;
  };
  const auto share_of = [&](std::int64_t begin, std::int64_t end, std::byte* memory, std::int64_t bytes,
                            std::int64_t most) {
    const std::int64_t count = at_once(bytes, most);
    return Share{begin, end, memory, count, bytes - count * tile_bytes >= gaps};
  };
  const std::int64_t bytes = slot_scratch_bytes(call);
  const std::int32_t threads = std::max<std::int32_t>(call.threads->count, 1);
  if (bytes >= kLeastTiles * tile_bytes && tiles.count() >= kLeastTiles * threads &&
      weight_bytes * threads <= kCostOfHandingOver * tile_bytes * tiles.count()) {
    parallel_slots(*call.threads, tiles.count(), Grain(kLeastTiles, 1),
                   [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                     compute(Threads{}, share_of(begin, end, call.scratch + slot * bytes, bytes, kUsefulTiles));
                   });
  } else {
    const std::int64_t most = std::min(kUsefulTiles * threads, tiles.count());
    compute(*call.threads, share_of(0, tiles.count(), call.scratch, call.scratch_bytes, most));
  }
}

}  // namespace bantam::ops::conv2d::winograd
