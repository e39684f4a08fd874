// conv2d in f32 as an implicit matrix product: the rows are output pixels, the columns output channels, and k runs over
// taps and input channels. Pixels whose window lies inside the image are multiplied where they lie; the others, and
// those at row ends, are first gathered into a tile of a few rows with zeros for the padding. Where weights are many
// and rows of pixels short, all pixels are gathered, many rows and a piece of k at a time, so that weights are not read
// again for every few pixels. There is no im2col buffer. Where windows leave the image, pixels with the same taps
// inside are multiplied together (zones.h), or, of few channels, parts of the image are copied with zeros around
// (bands.h).
#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/bands.h"
#include "ops/nn/conv2d/gemm_pixels.h"
#include "ops/nn/conv2d/kernels.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/conv2d/parallel_rows.h"
#include "ops/nn/conv2d/problem.h"
#include "ops/nn/conv2d/zones.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::conv2d {
namespace {

/// Rows of the tile that border pixels are gathered into: as many as the micro-kernel takes, fewer where they would
/// not stay in the first-level cache.
std::int64_t gathered_rows(std::int64_t k) {
  constexpr std::int64_t kTileFloats = 12288;
  return std::clamp<std::int64_t>(kTileFloats / k, 6, gemm::kMaxTileRows);
}

bool is_padded(const ConvGeometry& g) {
  return g.vertical.pad_before != 0 || g.vertical.pad_after != 0 || g.horizontal.pad_before != 0 ||
         g.horizontal.pad_after != 0;
}

std::int64_t pixel_count(const Problem& p) { return static_cast<std::int64_t>(p.g.y.n) * p.g.y.h * p.g.y.w; }

/// Rows of the smallest tile that will do: those in a small share of the memory of a small model, and none where all
/// windows lie inside the image.
std::int64_t least_tile_rows(const Problem& p) {
  constexpr std::int64_t kLeastFloats = 1024;
  return is_padded(p.g) ? std::clamp<std::int64_t>(kLeastFloats / p.k, 1, gemm::kMaxTileRows) : 0;
}

/// Pixels that are gathered at once where weights are many, and numbers of each that make it worth while.
constexpr std::int64_t kMostPieceRows = 60;
constexpr std::int64_t kPieceFloats = 384;

/// Do the windows lie in the image, but so few of a row that weights would be read again for every few pixels?
bool has_short_rows(const Problem& p) {
  return p.always_inside && !p.one_run && p.y_uniform && p.g.y.w < 2 * gemm::kMaxTileRows && has_many_weights(p);
}

/// Rows of the tile with which it goes fastest: also the ends of image rows are gathered into full tiles.
std::int64_t useful_tile_rows(const Problem& p) {
  if (has_short_rows(p)) return std::min((kMostPieceRows * kPieceFloats + p.k - 1) / p.k, pixel_count(p));
  const bool never = p.always_inside || (!is_padded(p.g) && p.g.y.n * p.g.y.h == 1);
  return never ? 0 : std::min(gathered_rows(p.k), pixel_count(p));
}

std::int64_t tile_bytes(const Problem& p, std::int64_t rows) {
  return align_up(rows * p.k * static_cast<std::int64_t>(sizeof(float)), kAlignment);
}

/// The tile of one thread.
struct Tile {
  float* floats = nullptr;
  std::int64_t rows = 0;  ///< of whole windows
  std::int64_t size = 0;  ///< in floats
};

Tile tile_of(const Invocation& call, const Problem& p, std::int64_t slot) {
  const std::int64_t bytes = slot_scratch_bytes(call);
  const std::int64_t fit = bytes / (p.k * static_cast<std::int64_t>(sizeof(float)));
  return {reinterpret_cast<float*>(call.scratch + slot * bytes), std::min(gemm::tile_rows(), fit),
          bytes / static_cast<std::int64_t>(sizeof(float))};
}

/// How many pixels from `at` on, in the same row, have their whole window inside the image.
std::int64_t pixels_inside(const Problem& p, const Pixel& at) {
  const ConvGeometry& g = p.g;
  if (p.always_inside) return g.y.w - at.x;
  const TapRange rows = taps_inside(g.vertical, window_origin(g.vertical, at.y), 0, g.x.h);
  const std::int64_t x0 = window_origin(g.horizontal, at.x);
  if (rows.size() != g.vertical.kernel || x0 < 0) return 0;
  const std::int64_t room = g.x.w - 1 - static_cast<std::int64_t>(g.horizontal.kernel - 1) * g.horizontal.dilation - x0;
  return room < 0 ? 0 : std::min<std::int64_t>(room / g.horizontal.stride + 1, g.y.w - at.x);
}

/// The windows of `count` pixels of one row from `at` on, where they lie.
gemm::LeftRows windows_in_place(const Problem& p, const float* x, const Pixel& at, std::int64_t count) {
  const ConvGeometry& g = p.g;
  const std::int64_t tap_step = g.x.w_stride * g.horizontal.dilation;
  gemm::LeftRows rows{
      .data = x + g.x.offset(at.n, window_origin(g.vertical, at.y), window_origin(g.horizontal, at.x)),
      .rows = count,
      .row_stride = g.x.w_stride * g.horizontal.stride,
      .outer = g.vertical.kernel,
      .outer_stride = g.x.h_stride * g.vertical.dilation,
      .segments = g.horizontal.kernel,
      .segment_stride = tap_step,
      .length = p.group_inputs,
  };
  if (p.taps_touch) {
    rows.length *= rows.segments;
    rows.segments = 1;
  }
  return rows;
}

/// Pixels to gather at once, a piece of k at a time; 0 where whole windows do as well.
std::int64_t rows_of_pieces(const Problem& p, const Tile& gathered) {
  constexpr std::int64_t kLeastPieceFloats = 64;
  if (!has_short_rows(p) && (p.always_inside || !p.y_uniform || !has_many_weights(p))) return 0;
  const std::int64_t tile = gemm::tile_rows();
  const std::int64_t tiles = std::min(gathered.size / (kPieceFloats * tile), kMostPieceRows / tile);
  if (tiles > 1) return tiles * tile;
  return gathered.rows < tile && gathered.size >= kLeastPieceFloats * tile ? tile : 0;
}

/// Gathers and multiplies the windows of pixels [index, index + count), which the tile holds at least in pieces.
void multiply_gathered(const Problem& p, const float* x, const gemm::RightPanels& weights, gemm::Result y,
                       std::int64_t index, std::int64_t count, const Tile& gathered) {
  const std::int64_t piece = std::min(gathered.size / count, p.k);
  for (std::int64_t first = 0; first < p.k; first += piece) {
    const std::int64_t length = std::min(piece, p.k - first);
    for (std::int64_t i = 0; i < count; ++i)
      gather_window(p, x, pixel_at(p.g.y, index + i), first, length, gathered.floats + i * length, 0.0F);
    gemm::RightPanels panels = weights;
    panels.first_k = first;
    panels.k = p.k;
    y.resumes = first > 0;
    y.ends = first + length == p.k;
    multiply({.data = gathered.floats, .rows = count, .row_stride = length, .length = length}, panels, y);
  }
}

/// The longest runs of results along an axis.
std::int64_t longest_run(const Problem& p) { return std::max(p.g.y.w, p.g.y.h); }

/// Do many weights meet runs of results that make tiles, so that they are multiplied tap by tap (zones.h)?
bool goes_tap_by_tap(const Problem& p) {
  constexpr std::int64_t kLeastRun = 4;
  return zones_apply(p) && has_many_weights(p) && longest_run(p) >= kLeastRun;
}

/// Are runs so short that some machines cut them into tiles of too few rows? Gathered pixels fill their tiles.
bool may_fill_few_rows(const Problem& p) {
  constexpr std::int64_t kShortRun = 7;
  return longest_run(p) <= kShortRun;
}

/// Does this machine, and is there scratch for tiles of gathered pixels?
bool fills_few_rows(const Problem& p, const Tile& gathered) {
  constexpr std::int64_t kLeastRows = 4;
  const std::int64_t tiles = (longest_run(p) + gemm::tile_rows() - 1) / gemm::tile_rows();
  return may_fill_few_rows(p) && longest_run(p) < kLeastRows * tiles && rows_of_pieces(p, gathered) > gemm::tile_rows();
}

/// Pixels that may be computed at once when the result overlaps x: some tiles, if they are a small share of the result.
/// Tap by tap, so many rows that weights are not read again for every few pixels. Where bands.h applies, a row of
/// results.
std::int64_t overlap_pixels(const Problem& p) {
  constexpr std::int64_t kMostTiles = 4;
  constexpr std::int64_t kShare = 128;
  if (goes_tap_by_tap(p)) return std::min<std::int64_t>((kMostPieceRows + p.g.y.w - 1) / p.g.y.w, p.g.y.h) * p.g.y.w;
  return std::clamp<std::int64_t>(pixel_count(p) / kShare / gemm::kMaxTileRows, 1, kMostTiles) * gemm::kMaxTileRows;
}

/// Computes output pixels [begin, end) of one group, which do not overlap x; all operands start at the group's first
/// channel.
void convolve_pixels(const Problem& p, const float* x, const gemm::RightPanels& weights, gemm::Result y,
                     std::int64_t begin, std::int64_t end, const Tile& gathered) {
  const std::int64_t tile = std::min(gemm::tile_rows(), gathered_rows(p.k));
  // Also of few pixels where not all their windows have room.
  const bool in_pieces = end - begin > tile || gathered.rows < end - begin;
  const std::int64_t many = in_pieces ? std::min(rows_of_pieces(p, gathered), end - begin) : 0;
  float* const y_base = y.data;
  y.row_stride = p.g.y.w_stride;
  for (std::int64_t index = begin; index < end;) {
    const Pixel at = pixel_at(p.g.y, index);
    y.data = y_base + p.g.y.offset(at.n, at.y, at.x);
    if (many > 0) {
      const std::int64_t count = std::min(many, end - index);
      multiply_gathered(p, x, weights, y, index, count, gathered);
      index += count;
      continue;
    }
    std::int64_t count = p.one_run ? end - index : std::min(pixels_inside(p, at), end - index);
    if (count >= gathered.rows || p.always_inside) {
      if (!p.always_inside && count > tile) count -= count % tile;
      multiply(windows_in_place(p, x, at, count), weights, y);
    } else {
      count = std::min({gathered.rows, end - index, p.y_uniform ? tile : p.g.y.w - at.x});
      multiply_gathered(p, x, weights, y, index, count, gathered);
    }
    index += count;
  }
}

}  // namespace

TileBytes gemm_tile_bytes(const OpCall& call) {
  const Problem p = make_problem(call.as<Conv2dParams>(), call.in(0), call.in(1), call.out());
  return {tile_bytes(p, least_tile_rows(p)), tile_bytes(p, useful_tile_rows(p))};
}

void convolve_gemm(const Problem& p, const float* x, const gemm::RightPanels& weights, const gemm::Result& y,
                   std::int64_t begin, std::int64_t end, float* tile, std::int64_t floats) {
  const Tile gathered{tile, std::min(gemm::tile_rows(), floats / p.k), floats};
  convolve_pixels(p, x, weights, y, begin, end, gathered);
}

bool gemm_supports(const OpCall& call) {
  return linear_form(call.in(0), call.in(1)) == LinearForm::kFloat && call.in(1).elements() > 0 &&
         call.out().elements() > 0;
}

Footprint gemm_footprint(const OpCall& call, int threads) {
  const Problem p = make_problem(call.as<Conv2dParams>(), call.in(0), call.in(1), call.out());
  const std::int64_t pixels = std::max<std::int64_t>(overlap_pixels(p), bands_apply(p) ? p.g.y.w : 0);
  // With several groups, the first one's result would overwrite what the others read.
  const std::int64_t lead = p.g.groups == 1 ? lead_bytes(call, p.g, pixels, threads) : Footprint::kNoOverlap;
  const std::int64_t tile = tile_bytes(p, useful_tile_rows(p));
  if (goes_tap_by_tap(p))
    return {.useful_scratch_bytes = may_fill_few_rows(p) ? tile * threads : 0, .lead_bytes = lead};
  return {.scratch_bytes = tile_bytes(p, least_tile_rows(p)) * threads,
          .useful_scratch_bytes = (bands_apply(p) ? std::max(tile, bands_useful_bytes(p)) : tile) * threads,
          .lead_bytes = lead};
}

std::int64_t gemm_packed_bytes(const OpCall& call) {
  const TensorDesc& w = call.in(1);
  const std::int64_t k = static_cast<std::int64_t>(w.dims[1]) * w.dims[2] * w.dims[3];
  const std::int64_t groups = call.as<Conv2dParams>().groups;
  return groups * gemm::packed_floats(k, w.dims[0] / groups) * static_cast<std::int64_t>(sizeof(float));
}

/// Group after group, each as the panels of the matrix [taps and input channels, output channels].
void gemm_pack(const OpCall& call, const Threads& threads, std::byte* destination) {
  const TensorDesc& w = call.in(1);
  const auto* data = static_cast<const float*>(call.inputs[1].data);
  auto* packed = reinterpret_cast<float*>(destination);
  const std::int64_t k = static_cast<std::int64_t>(w.dims[1]) * w.dims[2] * w.dims[3];
  const std::int64_t groups = call.as<Conv2dParams>().groups;
  const std::int64_t outputs = w.dims[0] / groups;
  const std::int64_t panels = gemm::panel_count(outputs);
  parallel_ranges(threads, groups * panels, gemm::packing_grain(k), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t group = at / panels;
      gemm::pack_panels_simd(data + group * outputs * k, k, outputs, 1, k, at % panels, at % panels + 1,
                             packed + group * gemm::packed_floats(k, outputs));
    }
  });
}

namespace {

/// Calls f(x, weights, y) for every group, each beginning with the group's first channel, and panels [first, last).
template <typename F>
void for_each_group(const Invocation& call, const Problem& p, std::int64_t first, std::int64_t last, F f) {
  const auto& params = call.as<Conv2dParams>();
  const auto* bias = optional_input<float>(call, 2);
  const std::int64_t packed = gemm::packed_floats(p.k, p.group_outputs);
  for (std::int64_t group = 0; group < params.groups; ++group) {
    const std::int64_t channel = group * p.group_outputs;
    f(call.input<float>(0) + group * p.group_inputs,
      gemm::RightPanels{call.input<float>(1) + group * packed, p.group_outputs, first, last},
      gemm::Result{.data = call.output<float>() + channel,
                   .bias = bias != nullptr ? bias + channel : nullptr,
                   .activation = params.activation});
  }
}

/// Pixels [begin, end) and panels [first, last) of every group.
void convolve_part(const Invocation& call, const Problem& p, std::int64_t slot, std::int64_t begin, std::int64_t end,
                   std::int64_t first, std::int64_t last) {
  const std::int64_t least = overlap_pixels(p);
  const Tile gathered = tile_of(call, p, slot);
  for_each_group(call, p, first, last, [&](const float* x, const gemm::RightPanels& weights, const gemm::Result& y) {
    for (std::int64_t index = begin, next; index < end; index = next) {
      next = std::min(index + pixels_at_once(call, p.g, index, least), end);
      convolve_pixels(p, x, weights, y, index, next, gathered);
    }
  });
}

/// Do threads share weights better than pixels? Sharing pixels, each reads all weights. Sharing weights, each reads all
/// pixels, of which others have written most; and the results of each are parts of all pixels, which the next step
/// then gets from other processors again.
bool splits_weights(const Problem& p) {
  const std::int64_t numbers = pixel_count(p) * (p.group_inputs + p.group_outputs);
  return has_many_weights(p) && p.k * p.group_outputs >= kCostOfHandingOver * numbers;
}

/// Is it faster zone by zone, or tap by tap, than to gather windows? Zone by zone, not where results are few at a time.
bool prefers_zones(const Invocation& call, const Problem& p) {
  if (goes_tap_by_tap(p)) return !fills_few_rows(p, tile_of(call, p, 0));
  return zones_apply(p) && !has_many_weights(p) && !result_overlaps(call);
}

/// Zones of all groups.
void run_zones(const Invocation& call, const Problem& p) {
  const std::int64_t width = p.g.y.w;
  const std::int64_t rows = static_cast<std::int64_t>(p.g.y.n) * p.g.y.h;
  const std::int64_t panels = gemm::panel_count(p.group_outputs);
  const std::int64_t least = overlap_pixels(p);
  const auto convolve = [&](const Problem& part, std::int64_t begin, std::int64_t end, std::int64_t first,
                            std::int64_t last) {
    for_each_group(call, p, first, last, [&](const float* x, const gemm::RightPanels& weights, const gemm::Result& y) {
      for (std::int64_t row = begin, next; row < end; row = next) {
        next = std::min(row + pixels_at_once(call, p.g, row * width, least) / width, end);
        convolve_zones(part, x, weights, y, row, next);
      }
    });
  };
  if (splits_weights(p)) {
    parallel_ranges(*call.threads, panels, 2,
                    [&](std::int64_t first, std::int64_t last) { convolve(p, 0, rows, first, last); });
  } else {
    parallel_rows(*call.threads, p.g, product_grain(p),
                  [&](const ConvGeometry& g, std::int64_t begin, std::int64_t end) {
                    Problem part = p;
                    part.g = g;
                    convolve(part, begin, end, 0, panels);
                  });
  }
}

}  // namespace

Status run_gemm(const Invocation& call) {
  const Problem p = make_problem(call.as<Conv2dParams>(), call.in(0), call.in(1), call.out());
  if (prefers_zones(call, p)) {
    run_zones(call, p);
    return ok_status();
  }
  if (bands_apply(p) && run_bands(call, p)) return ok_status();
  const std::int64_t pixels = pixel_count(p);
  const std::int64_t panels = gemm::panel_count(p.group_outputs);
  if (splits_weights(p)) {
    parallel_slots(*call.threads, panels, 2, [&](std::int64_t slot, std::int64_t first, std::int64_t last) {
      convolve_part(call, p, slot, 0, pixels, first, last);
    });
  } else {
    parallel_slots(*call.threads, pixels, product_grain(p),
                   [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                     convolve_part(call, p, slot, begin, end, 0, panels);
                   });
  }
  return ok_status();
}

}  // namespace bantam::ops::conv2d
