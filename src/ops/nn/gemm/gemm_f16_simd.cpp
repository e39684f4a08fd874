// Rounding of left rows to 16 bits, and the order in which their tiles are computed.
#include <algorithm>
#include <bit>
#include <limits>

#include "ops/nn/gemm/gemm_f16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/gemm/gemm_f16_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/rows_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Halves make vectors of at most a panel of floats.
using D = hn::CappedTag<float, kPanel>;
using V = hn::Vec<D>;
constexpr D kD;
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));

/// Calls f(at, vector) for vectors of the numbers, of which the last may be filled up with zeros.
template <typename F>
HWY_INLINE void for_each_vector(const float* from, std::int64_t count, F f) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) f(i, hn::LoadU(kD, from + i));
  if (i < count) f(i, ops::HWY_NAMESPACE::load_partial(kD, from + i, static_cast<std::size_t>(count - i)));
}

/// A power of two that brings the largest number into [8, 16), where it is a number at all, and its inverse. Both are
/// normal numbers.
struct Scale {
  float to_halves;
  float back;

  explicit Scale(float largest) {
    constexpr std::uint32_t kBias = 127;
    constexpr std::uint32_t kWished = 3;  // the exponent of 8
    const std::uint32_t exponent = std::max(std::bit_cast<std::uint32_t>(largest) >> 23, kWished + 1);
    to_halves = std::bit_cast<float>((2 * kBias + kWished - exponent) << 23);
    back = std::bit_cast<float>((exponent - kWished) << 23);
  }
};

void round_piece(const float* from, std::int64_t count, std::uint16_t* to, float* scale) {
  const hn::Rebind<hwy::float16_t, D> halves;
  V most = hn::Zero(kD);
  for_each_vector(from, count, [&](std::int64_t, V x) HWY_ATTR { most = hn::Max(most, hn::Abs(x)); });
  const Scale s(hn::GetLane(hn::MaxOfLanes(kD, most)));
  const V factor = hn::Set(kD, s.to_halves);
  for_each_vector(from, count, [&](std::int64_t at, V x) HWY_ATTR {
    const auto rounded = hn::DemoteTo(halves, hn::Mul(x, factor));
    if (at + kLanes <= count) {
      hn::StoreU(rounded, halves, reinterpret_cast<hwy::float16_t*>(to + at));
      return;
    }
    HWY_ALIGN hwy::float16_t numbers[kLanes];
    hn::Store(rounded, halves, numbers);
    for (std::int64_t i = 0; i < count - at; ++i) to[at + i] = std::bit_cast<std::uint16_t>(numbers[i]);
  });
  *scale = s.back;
}

void round_row_target(const float* from, const HalfRows& to, std::int64_t row) {
  std::uint16_t* numbers = to.numbers + row * to.row_stride();
  float* scales = to.scales + row * to.pieces;
  for (std::int64_t k = 0; k < to.k; k += to.piece)
    round_piece(from + k, std::min(to.piece, to.k - k), numbers + k, scales++);
}

}  // namespace
}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/common/activate_rows.h"

namespace bantam::ops::gemm {

HWY_EXPORT(round_row_target);

void round_row(const float* from, const HalfRows& to, std::int64_t row) {
  HWY_DYNAMIC_DISPATCH(round_row_target)(from, to, row);
}

namespace {

void limit(const Activation& activation, HalfTile& tile) {
  tile.clamps = activation.function == UnaryFunction::kRelu || activation.function == UnaryFunction::kClip;
  tile.low = activation.function == UnaryFunction::kClip ? activation.a : 0.0F;
  tile.high = activation.function == UnaryFunction::kClip ? activation.b : std::numeric_limits<float>::infinity();
}

/// Some rows of a tile's columns whose number is no multiple of what vectors have.
void multiply_corner(HalfTile tile, std::int64_t columns) {
  alignas(64) float sums[kHalfTileRows * kHalfColumns];
  const HalfTile whole = tile;
  if (tile.start_stride != 0) {
    std::fill_n(sums, tile.rows * kHalfColumns, 0.0F);
    for (std::int64_t r = 0; r < tile.rows; ++r)
      std::copy_n(whole.start + r * whole.start_stride, columns, sums + r * kHalfColumns);
    tile.start = sums;
    tile.start_stride = kHalfColumns;
  }
  tile.y = sums;
  tile.y_stride = kHalfColumns;
  half_tile_function()(tile);
  for (std::int64_t r = 0; r < tile.rows; ++r)
    std::copy_n(sums + r * kHalfColumns, columns, whole.y + r * whole.y_stride);
}

}  // namespace

void multiply_halves(const HalfRows& a, const NarrowPanels& b, std::int64_t first, std::int64_t last,
                     std::int64_t first_k, const Result& y) {
  constexpr std::int64_t kTilePanelCount = std::max<std::int64_t>(kHalfColumns / kPanel, 1);
  const std::int64_t panel_stride = b.k * kPanel;
  const std::int64_t end = std::min(last * kPanel, b.n);
  const std::int64_t tiles = (a.rows + kHalfTileRows - 1) / kHalfTileRows;
  HalfTile tile{.row_stride = a.row_stride(),
                .scale_stride = a.pieces,
                .k = a.k,
                .piece = a.piece,
                .panel_stride = panel_stride,
                .y_stride = y.row_stride};
  if (y.ends) limit(y.activation, tile);
  const bool complete = !y.ends || tile.clamps || y.activation.function == UnaryFunction::kIdentity;
  for (std::int64_t panel = first; panel < last; panel += kTilePanelCount) {
    const std::int64_t column = panel * kPanel;
    const std::int64_t columns = std::min(kHalfColumns, end - column);
    alignas(64) float start[kHalfColumns] = {};
    if (y.bias != nullptr) std::copy_n(y.bias + column, columns, start);
    tile.vectors = (columns + kHalfLanes - 1) / kHalfLanes;
    tile.panels = std::min(kTilePanelCount, last - panel);
    tile.panel = reinterpret_cast<const std::uint16_t*>(b.data) + panel * panel_stride + first_k * kPanel;
    tile.ahead = tile.panel + kTilePanelCount * panel_stride;
    tile.ahead_step = (columns + tiles - 1) / tiles;
    for (std::int64_t i = 0; i < tiles; ++i) {
      const std::int64_t row = a.rows * i / tiles;
      tile.rows = a.rows * (i + 1) / tiles - row;
      tile.a = a.numbers + row * a.row_stride();
      tile.scales = a.scales + row * a.pieces;
      tile.y = y.data + row * y.row_stride + column;
      tile.start = y.resumes ? tile.y : start;
      tile.start_stride = y.resumes ? y.row_stride : 0;
      if (columns == tile.vectors * kHalfLanes) {
        half_tile_function()(tile);
      } else {
        multiply_corner(tile, columns);
      }
      tile.ahead += tile.ahead_step * a.k;
    }
    if (!complete) activate_rows(y.activation, y.data + column, a.rows, y.row_stride, columns);
  }
}

}  // namespace bantam::ops::gemm
#endif
