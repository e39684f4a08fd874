// The micro-kernel of gemm_f32.h. A tile of R rows and V vectors of columns is accumulated in registers: per k, V loads
// from the panels and R broadcasts feed R * V multiply-adds.
#include <algorithm>

#include "ops/nn/gemm/gemm_f32.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/gemm/gemm_f32_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/activate_rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::activate_rows;
using ops::HWY_NAMESPACE::ClampedStore;
using ops::HWY_NAMESPACE::unroll;

using D = hn::CappedTag<float, kPanel>;
using V = hn::Vec<D>;
constexpr D kD;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
constexpr int kVectorsPerPanel = static_cast<int>(kPanel) / kLanes;

// Rows times vectors fill the register file but for the panel's vectors and a broadcast.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr int kRows = 12;
constexpr int kVectors = 2;
#elif HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
constexpr int kRows = 6;
constexpr int kVectors = 2;
#elif HWY_ARCH_ARM_A64
constexpr int kRows = 6;
constexpr int kVectors = kVectorsPerPanel;
#else
constexpr int kRows = 2;
constexpr int kVectors = kVectorsPerPanel;
#endif
static_assert(kRows <= kMaxTileRows);

// A single row needs more columns to have enough independent sums.
constexpr int kVectorsOfOneRow = std::max(kVectorsPerPanel, std::min(8, 4 * kVectorsPerPanel));

// Columns of a tile; both are whole panels.
constexpr std::int64_t kColumns = kVectors * kLanes;
constexpr std::int64_t kColumnsOfOneRow = kVectorsOfOneRow * kLanes;
static_assert(kColumns % kPanel == 0 && kColumnsOfOneRow % kPanel == 0);

/// What a tile computes: `columns` columns from the first of `panel`.
struct Tile {
  const float* a;
  const float* panel;
  std::int64_t panel_stride;
  const float* bias;  // padded to whole panels, or null
  float* y;
  std::int64_t columns;
  ClampedStore store;
};

HWY_INLINE void store_columns(const ClampedStore& store, V v, float* to, std::int64_t columns) {
  if (columns >= kLanes) {
    store(kD, v, to);
    return;
  }
  HWY_ALIGN float lanes[kLanes];
  store(kD, v, lanes);
  for (std::int64_t i = 0; i < columns; ++i) to[i] = lanes[i];
}

/// Vector v of the tile at row k of its panel.
HWY_INLINE std::int64_t vector_offset(const Tile& tile, int v) {
  return v / kVectorsPerPanel * tile.panel_stride + v % kVectorsPerPanel * kLanes;
}

template <int kTileRows, int kTileVectors>
HWY_NOINLINE void multiply_tile(const LeftRows& left, const Tile& tile, std::int64_t y_stride) {
  V sums[kTileRows][kTileVectors];
  unroll<kTileVectors>([&](auto v) HWY_ATTR {
    const V start = tile.bias != nullptr ? hn::LoadU(kD, tile.bias + v * kLanes) : hn::Zero(kD);
    unroll<kTileRows>([&](auto r) HWY_ATTR { sums[r][v] = start; });
  });
  const float* b = tile.panel;
  const std::int64_t row = left.row_stride;
  for (std::int64_t o = 0; o < left.outer; ++o)
    for (std::int64_t s = 0; s < left.segments; ++s) {
      // Every third row has a pointer; the two between are reached by an index, which keeps all in registers.
      const float* base[(kTileRows + 2) / 3];
      unroll<(kTileRows + 2) / 3>(
          [&](auto g) HWY_ATTR { base[g] = tile.a + o * left.outer_stride + s * left.segment_stride + 3 * g * row; });
      for (std::int64_t k = 0; k < left.length; ++k, b += kPanel) {
        V right[kTileVectors];
        unroll<kTileVectors>([&](auto v) HWY_ATTR { right[v] = hn::LoadU(kD, b + vector_offset(tile, v)); });
        unroll<kTileRows>([&](auto r) HWY_ATTR {
          const V x = hn::Set(kD, base[r / 3][r % 3 * row + k]);
          unroll<kTileVectors>([&](auto v) HWY_ATTR { sums[r][v] = hn::MulAdd(x, right[v], sums[r][v]); });
        });
      }
    }
  unroll<kTileVectors>([&](auto v) HWY_ATTR {
    const std::int64_t columns = tile.columns - v * kLanes;
    unroll<kTileRows>(
        [&](auto r) HWY_ATTR { store_columns(tile.store, sums[r][v], tile.y + r * y_stride + v * kLanes, columns); });
  });
}

using TileFunction = void (*)(const LeftRows&, const Tile&, std::int64_t);

template <int kTileVectors, int... kRowsMinusOne>
constexpr TileFunction tile_function(int rows, std::integer_sequence<int, kRowsMinusOne...>) {
  constexpr TileFunction kFunctions[] = {multiply_tile<kRowsMinusOne + 1, kTileVectors>...};
  return kFunctions[rows - 1];
}

/// The kernel for a tile of that many rows (1..kRows), at most kVectors * kLanes columns.
TileFunction tile_function(std::int64_t rows, bool narrow) {
  constexpr auto kCounts = std::make_integer_sequence<int, kRows>();
  return narrow ? tile_function<std::max(kVectors / 2, 1)>(static_cast<int>(rows), kCounts)
                : tile_function<kVectors>(static_cast<int>(rows), kCounts);
}

/// Columns [first, first + columns) of all rows; they begin a panel and fit one group of vectors.
void multiply_columns(const LeftRows& a, const RightPanels& b, const Result& y, std::int64_t panel_stride,
                      std::int64_t first, std::int64_t columns, bool one_row) {
  HWY_ALIGN float bias[std::max(kColumns, kColumnsOfOneRow)];
  const std::int64_t padded = panel_count(columns) * kPanel;
  if (y.bias != nullptr)
    for (std::int64_t i = 0; i < padded; ++i) bias[i] = i < columns ? y.bias[first + i] : 0.0F;
  Tile tile{a.data,
            b.data + first / kPanel * panel_stride,
            panel_stride,
            y.bias != nullptr ? bias : nullptr,
            y.data + first,
            columns,
            ClampedStore(y.activation)};
  const bool narrow = columns <= std::max(kVectors / 2, 1) * kLanes;
  for (std::int64_t m = 0; m < a.rows;) {
    const std::int64_t rows = std::min<std::int64_t>(kRows, a.rows - m);
    const TileFunction function = one_row ? multiply_tile<1, kVectorsOfOneRow> : tile_function(rows, narrow);
    function(a, tile, y.row_stride);
    m += rows;
    tile.a += rows * a.row_stride;
    tile.y += rows * y.row_stride;
  }
  if (!tile.store.complete()) activate_rows(y.activation, y.data + first, a.rows, y.row_stride, columns);
}

void multiply_target(const LeftRows& a, const RightPanels& b, const Result& y) {
  const std::int64_t panel_stride = a.k() * kPanel;
  // Rows are taken in chunks that stay in the second-level cache while all panels pass by.
  constexpr std::int64_t kChunkFloats = 32768;
  const std::int64_t tiles = std::max<std::int64_t>(kChunkFloats / (a.k() * kRows + 1), 1);
  const std::int64_t last = std::min(b.last * kPanel, b.n);
  for (std::int64_t m = 0; m < a.rows; m += tiles * kRows) {
    LeftRows rows = a;
    rows.rows = std::min(tiles * kRows, a.rows - m);
    rows.data += m * a.row_stride;
    Result result = y;
    result.data += m * y.row_stride;
    for (std::int64_t n = b.first * kPanel; n < last;) {
      const bool one_row = rows.rows == 1 && last - n > kColumnsOfOneRow - kPanel;
      const std::int64_t columns = std::min(one_row ? kColumnsOfOneRow : kColumns, last - n);
      multiply_columns(rows, b, result, panel_stride, n, columns, one_row);
      n += columns;
    }
  }
}

std::int64_t tile_rows_target() { return kRows; }

}  // namespace
}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::gemm {

HWY_EXPORT(multiply_target);
HWY_EXPORT(tile_rows_target);

void multiply(const LeftRows& a, const RightPanels& b, const Result& y) {
  HWY_DYNAMIC_DISPATCH(multiply_target)(a, b, y);
}

std::int64_t tile_rows() { return HWY_DYNAMIC_DISPATCH(tile_rows_target)(); }

}  // namespace bantam::ops::gemm
#endif
