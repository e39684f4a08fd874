#include <algorithm>

#include "ops/nn/gemm/gemm_i16.h"
#include "ops/nn/gemm/panel_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/gemm/gemm_i16_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/nn/gemm/gemm_i8_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {
namespace {

/// Of a pair of rows of a panel: a line.
constexpr std::int64_t kPairBytes = 4 * kPanel;

/// Do tiles fetch the panels that come next? Elsewhere that would take time from the products. A line per pair: a loop
/// over several would, too.
constexpr bool kFetchesPanels = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;

/// `pairs` pairs of rows of a tile's columns, in panels that are so many bytes apart.
struct PairColumns {
  const std::int8_t* panel = nullptr;
  std::int64_t panel_stride = 0;
  std::int64_t pairs = 0;
  const std::int8_t* ahead = nullptr;  ///< panels that come next: a tile fetches a part of them, so much per pair
  std::int64_t ahead_step = 0;
};

/// Sums of the products of `b.pairs` pairs of each row.
template <int kTileRows, int kTileVectors>
HWY_INLINE void sum_pairs_of(const std::int16_t* a, std::int64_t row_stride, const PairColumns& b,
                             hn::Vec<D32> (&sum)[kTileRows][kTileVectors]) {
#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
  if constexpr (kTileRows >= 5 && kTileVectors == 2) {
    alignas(32) static constexpr std::int32_t kZeros[kPanel] = {};
    return sum_large_tile<kTileRows, true>(a, row_stride, reinterpret_cast<const std::int16_t*>(b.panel), b.pairs / 2,
                                           kZeros, sum, {b.ahead, b.ahead_step});
  }
#endif
  using V32 = hn::Vec<D32>;
  const hn::Repartition<std::int16_t, D32> d16;
  const hn::Repartition<std::int8_t, D32> d8;
  V32 low[kTileRows][kTileVectors];
  V32 high[kTileRows][kTileVectors];
  unroll<kTileRows>([&](auto r) HWY_ATTR {
    unroll<kTileVectors>([&](auto v) HWY_ATTR { low[r][v] = high[r][v] = hn::Zero(kD32); });
  });
  const TileRows<kTileRows, std::int16_t> rows(a, row_stride);
  const std::int8_t* panel = b.panel;
  const std::int64_t panel_stride = b.panel_stride;
  const std::int8_t* ahead = b.ahead;
  for (std::int64_t i = 0; i < 2 * b.pairs; i += 2, panel += kPairBytes) {
    if constexpr (kFetchesPanels) {
      __builtin_prefetch(ahead, 0, 2);
      ahead += b.ahead_step;
    }
    hn::Vec<decltype(d16)> right[kTileVectors];
    unroll<kTileVectors>(
        [&](auto v) HWY_ATTR { right[v] = hn::BitCast(d16, hn::LoadU(d8, vector_at<v>(panel, panel_stride))); });
    add_pairs<kTileRows, kTileVectors>(rows, i, right, low, high);
  }
  unroll<kTileRows>([&](auto r) HWY_ATTR {
    unroll<kTileVectors>([&](auto v) HWY_ATTR { sum[r][v] = hn::RearrangeToOddPlusEven(low[r][v], high[r][v]); });
  });
}

template <int kTileRows, int kTileVectors>
HWY_NOINLINE void multiply_tile_of(const std::int16_t* a, std::int64_t row_stride, const PairColumns& b,
                                   std::int32_t* y, std::int64_t y_stride) {
  hn::Vec<D32> sum[kTileRows][kTileVectors];
  sum_pairs_of(a, row_stride, b, sum);
  unroll<kTileRows>([&](auto r) HWY_ATTR {
    unroll<kTileVectors>([&](auto v) HWY_ATTR { hn::StoreU(sum[r][v], kD32, y + r * y_stride + v * kLanes); });
  });
}

using PairsFunction = void (*)(const std::int16_t*, std::int64_t, const PairColumns&, std::int32_t*, std::int64_t);

/// Rows of a tile of so many vectors.
constexpr int tile_rows(int vectors) { return kHasWideTiles ? byte_rows(vectors) : kRows; }

template <int kTileVectors, int... kRowsMinusOne>
PairsFunction pairs_function(std::int64_t rows, std::integer_sequence<int, kRowsMinusOne...>) {
  static constexpr PairsFunction kFunctions[] = {multiply_tile_of<kRowsMinusOne + 1, kTileVectors>...};
  return kFunctions[rows - 1];
}

/// All rows of a tile of columns, from the first of y on.
template <int kTileVectors>
void multiply_columns(const LeftNumbers& a, PairColumns b, std::int32_t* y, std::int64_t y_stride) {
  constexpr int kMost = tile_rows(kTileVectors);
  const std::int64_t tile = even_rows(a.rows, kMost);
  const std::int64_t tiles = (a.rows + tile - 1) / tile;
  constexpr std::int64_t kPanels = kTileVectors / kVectorsPerPanel;
  b.ahead = b.panel + kPanels * b.panel_stride;
  b.ahead_step = (kPanels * kPairBytes + tiles - 1) / tiles;
  for (std::int64_t m = 0; m < a.rows; m += tile) {
    const std::int64_t rows = std::min(tile, a.rows - m);
    const auto function = pairs_function<kTileVectors>(rows, std::make_integer_sequence<int, kMost>());
    function(a.data + m * a.row_stride, a.row_stride, b, y + m * y_stride, y_stride);
    b.ahead += b.pairs * b.ahead_step;
  }
}

/// Vectors of columns of a tile where one panel is left.
constexpr int kPanelVectors = std::min(kVectors, kVectorsPerPanel);

auto columns_function(std::int64_t columns) {
  if (columns < kColumns) return multiply_columns<kPanelVectors>;
  if constexpr (kHasWideTiles) {
    if (columns > 3 * kPanel) return multiply_columns<4>;
    if (columns > kColumns) return multiply_columns<3>;
  }
  return multiply_columns<kVectors>;
}

void multiply_target(const LeftNumbers& a, const RightNumbers& b, std::int32_t* y) {
  constexpr std::int64_t kNumber = sizeof(std::int16_t);
  constexpr std::int64_t kPanels = kColumns / kPanel;
  const std::int64_t panels = b.n / kPanel;
  const PanelTiles tiles = kHasWideTiles ? PanelTiles::of_fours(panels, kPanels) : PanelTiles(panels, kPanels);
  for (std::int64_t tile = 0; tile < tiles.count(); ++tile) {
    const std::int64_t n = tiles.first(tile) * kPanel;
    const std::int64_t count = tiles.first(tile + 1) * kPanel - n;
    const PairColumns columns{reinterpret_cast<const std::int8_t*>(b.data + packed_i16_index(b.k, b.first, n)),
                              b.k * kPanel * kNumber, b.count / 2};
    columns_function(count)(a, columns, y + n, b.n);
  }
}

}  // namespace
}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::gemm {

HWY_EXPORT(multiply_target);

void multiply(const LeftNumbers& a, const RightNumbers& b, std::int32_t* y) {
  HWY_DYNAMIC_DISPATCH(multiply_target)(a, b, y);
}

}  // namespace bantam::ops::gemm
#endif
