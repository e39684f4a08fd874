// The micro-kernel of gemm_f32.h. A tile of R rows and V vectors of columns is accumulated in registers: per k, V loads
// from the panels and R broadcasts feed R * V multiply-adds.
#include <algorithm>
#include <cstring>

#include "ops/nn/gemm/gemm_f32.h"
#include "ops/nn/gemm/panel_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/gemm/gemm_f32_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/clamped_store_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::ClampedStore;
using ops::HWY_NAMESPACE::in_register;
using ops::HWY_NAMESPACE::unroll;

using D = hn::CappedTag<float, kPanel>;
using V = hn::Vec<D>;
constexpr D kD;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
constexpr int kVectorsPerPanel = static_cast<int>(kPanel) / kLanes;

// Rows times vectors fill the register file but for the panel's vectors and a broadcast.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr int kRows = 14;
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

// Panels that come next are fetched into the second-level cache where that is large: in the first level they would
// displace the panels in use.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr int kAheadLocality = 2;
#else
constexpr int kAheadLocality = 3;
#endif

// A tile of half as many vectors needs more rows to have enough independent sums.
constexpr int kNarrowVectors = std::max(kVectors / 2, 1);
#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
constexpr int kNarrowRows = 12;
#elif HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr int kNarrowRows = 16;
#else
constexpr int kNarrowRows = kRows;
#endif

// Where two panels make a tile, three and four do, too, of fewer rows: they load least for each multiply-add. Some
// processors load one register of 64 bytes per cycle, while they multiply two.
constexpr bool kHasWideTiles = kVectors == 2 && kVectorsPerPanel == 1;
constexpr int kTripleVectors = 3;
constexpr int kTripleRows = 9;
constexpr int kQuadVectors = 4;
constexpr int kQuadRows = 6;

// A single row needs more columns to have enough independent sums (multiply_row). So do a few rows where there are many
// registers: they take the panels as fast as the caches give them, and would only be held up by fetching any ahead.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr int kFewRows = 6;
#else
constexpr int kFewRows = 1;
#endif
constexpr int kVectorsOfFewRows = std::max(kVectorsPerPanel, std::min(8, 4 * kVectorsPerPanel));

// Rows and results of larger tiles are fetched before they are needed: x and y together are often larger than the
// second-level cache. Tiles of fewer sums have no time for it.
template <int kTileRows, int kTileVectors>
constexpr bool kFetchesRows = kHasWideTiles && (kTileRows * kTileVectors > kFewRows * kVectors);

// Columns of a tile; both are whole panels.
constexpr std::int64_t kColumns = kVectors * kLanes;
constexpr std::int64_t kColumnsOfFewRows = kVectorsOfFewRows * kLanes;
static_assert(kColumns % kPanel == 0 && kColumnsOfFewRows % kPanel == 0);
static_assert(!kHasWideTiles || (kVectorsOfFewRows == kQuadVectors && kFewRows == kQuadRows));
/// Of a tile, unless rows are few.
constexpr int kMostVectors = kHasWideTiles ? kQuadVectors : kVectors;

/// What a tile computes: `columns` columns from the first of `panel`.
struct Tile {
  const float* a;
  const float* panel;
  std::int64_t panel_stride;
  const float* bias;  // or null
  float* y;
  std::int64_t columns;
  ClampedStore store;
  bool resumes;
  const float* ahead;  // panels that come next: the tile fetches a part of them, so much per k
  std::int64_t ahead_step;
  bool rows_touch;  // so that those which come next can be fetched by lines
};

// Of a panel of which no more than half is left only that half of a vector is multiplied: processors that compute with
// vectors of 64 bytes in two halves take half the time. In assembly: gcc would move halves between registers.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr int kHalfLanes = kLanes / 2;
/// The first half of x * y + sum; the rest is 0.
HWY_INLINE V multiply_add_half(V x, V y, V sum) {
  asm("vfmadd231ps %t2, %t1, %t0" : "+v"(sum.raw) : "v"(y.raw), "v"(x.raw));
  return sum;
}
/// The same of one number in all lanes.
HWY_INLINE V multiply_add_half(const float& x, V y, V sum) {
  asm("vfmadd231ps %2%{1to8%}, %t1, %t0" : "+v"(sum.raw) : "v"(y.raw), "m"(x));
  return sum;
}
/// What these read of a vector. While instructions of 64 bytes are on their way, loads too, Intel's processors do half
/// as many of 32 in a cycle; so a tile of nothing but halves has none.
HWY_INLINE V load_half(const float* from) { return V{_mm512_castps256_ps512(_mm256_loadu_ps(from))}; }
#else
constexpr int kHalfLanes = 0;
HWY_INLINE V load_half(const float* from) { return hn::LoadU(kD, from); }
#endif

// Vectors of which only the first `columns` lanes are columns of y; the others are 0 when loaded.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
HWY_INLINE V load_columns(const float* from, std::int64_t columns) {
  if (columns >= kLanes) return hn::LoadU(kD, from);
  return hn::MaskedLoad(hn::FirstN(kD, static_cast<std::size_t>(std::max<std::int64_t>(columns, 0))), kD, from);
}

HWY_INLINE void store_columns(V v, float* to, std::int64_t columns) {
  hn::BlendedStore(v, hn::FirstN(kD, static_cast<std::size_t>(std::max<std::int64_t>(columns, 0))), kD, to);
}
#else
HWY_INLINE V load_columns(const float* from, std::int64_t columns) {
  if (columns >= kLanes) return hn::LoadU(kD, from);
  HWY_ALIGN float lanes[kLanes] = {};
  for (std::int64_t i = 0; i < columns; ++i) lanes[i] = from[i];
  return hn::Load(kD, lanes);
}

/// Copies kFloats floats if those are one of the powers of two that make up `count`; from and to pass them.
template <int kFloats>
HWY_INLINE void copy_if(std::int64_t count, const float*& from, float*& to) {
  if (count <= 0 || (count & kFloats) == 0) return;
  std::memcpy(to, from, kFloats * sizeof(float));
  from += kFloats;
  to += kFloats;
}

/// The first `columns` floats of v, fewer than it has. Not in line: gcc would keep sums that are stored so in memory
/// all along.
HWY_NOINLINE void store_part(V v, float* to, std::int64_t columns) {
  static_assert(kLanes <= 8);
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, kD, lanes);
  const float* from = lanes;
  copy_if<4>(columns, from, to);
  copy_if<2>(columns, from, to);
  copy_if<1>(columns, from, to);
}

HWY_INLINE void store_columns(V v, float* to, std::int64_t columns) {
  if (columns >= kLanes) return hn::StoreU(v, kD, to);
  if (columns > 0) store_part(v, to, columns);
}
#endif

/// Vector v of the tile at row k of its panel.
HWY_INLINE std::int64_t vector_offset(const Tile& tile, int v) {
  return v / kVectorsPerPanel * tile.panel_stride + v % kVectorsPerPanel * kLanes;
}

/// The same. What is reached by it is loaded after what came before: gcc would load the numbers of all rows at once on
/// Arm, and run out of registers.
HWY_INLINE std::int64_t in_order(std::int64_t i) {
#if HWY_COMPILER_GCC && !HWY_COMPILER_CLANG && HWY_ARCH_ARM_A64
  asm volatile("" : "+r"(i));
#endif
  return i;
}

/// kFetches: is time left to fetch what comes next? kHalf: are the columns of the last vector no more than half of it?
template <int kTileRows, int kTileVectors, bool kFetches, bool kHalf>
HWY_INLINE void compute_tile(const LeftRows& left, const Tile& tile, std::int64_t y_stride) {
  V sums[kTileRows][kTileVectors];
  if (tile.resumes) {
    unroll<kTileVectors>([&](auto v) HWY_ATTR {
      const std::int64_t columns = tile.columns - v * kLanes;
      unroll<kTileRows>([&](auto r)
                            HWY_ATTR { sums[r][v] = load_columns(tile.y + r * y_stride + v * kLanes, columns); });
    });
  } else {
    const bool whole = tile.columns >= kTileVectors * kLanes;
    unroll<kTileVectors>([&](auto v) HWY_ATTR {
      V start = hn::Zero(kD);
      if (tile.bias != nullptr)
        start = whole ? hn::LoadU(kD, tile.bias + v * kLanes)
                      : load_columns(tile.bias + v * kLanes, tile.columns - v * kLanes);
      unroll<kTileRows>([&](auto r) HWY_ATTR { sums[r][v] = start; });
    });
  }
  if constexpr (kFetches && kFetchesRows<kTileRows, kTileVectors>) {
    unroll<kTileRows>([&](auto r) HWY_ATTR {
      unroll<kTileVectors>([&](auto v) HWY_ATTR { __builtin_prefetch(tile.y + r * y_stride + v * kLanes, 1); });
    });
  }
  const float* b = tile.panel;
  const float* ahead = tile.ahead;
  const std::int64_t row = left.row_stride;
  // From a panel's row, which is a line, to one of the next rows: with an index of their own gcc would run out of
  // registers.
  const std::uintptr_t next_rows =
      tile.rows_touch ? reinterpret_cast<std::uintptr_t>(tile.a + kTileRows * row) - reinterpret_cast<std::uintptr_t>(b)
                      : 0;
  for (std::int64_t o = 0; o < left.outer; ++o)
    for (std::int64_t s = 0; s < left.segments; ++s) {
      // Every third row has a pointer; the two between are reached by an index, which keeps all in registers.
      const float* base[(kTileRows + 2) / 3];
      unroll<(kTileRows + 2) / 3>(
          [&](auto g) HWY_ATTR { base[g] = tile.a + o * left.outer_stride + s * left.segment_stride + 3 * g * row; });
      const auto add = [&](std::int64_t k) __attribute__((always_inline)) HWY_ATTR {
        if constexpr (kFetches && kFetchesRows<kTileRows, kTileVectors>)
          __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(b) + next_rows));
        if constexpr (kFetches && kTileVectors >= kVectors && kTileRows > 1) {
          // Where few tiles share several panels, this is every second to fourth line: a loop over all of them would
          // take issue slots from the products, of which a processor that runs a second thread has few.
          __builtin_prefetch(ahead, 0, kAheadLocality);
          ahead += tile.ahead_step;
        }
        // In registers: gcc would load what two or three rows need once for each of them.
        V right[kTileVectors];
        unroll<kTileVectors>([&](auto v) HWY_ATTR {
          const float* vector = b + vector_offset(tile, v);
          right[v] = kHalf && kTileVectors == 1 ? load_half(vector) : hn::LoadU(kD, vector);
          if constexpr (kTileRows > 1) right[v] = in_register(right[v]);
        });
        unroll<kTileRows>([&](auto r) HWY_ATTR {
          const float& number = base[r / 3][r % 3 * row + in_order(k)];
          if constexpr (kHalf && kTileVectors == 1) {
            sums[r][0] = multiply_add_half(number, right[0], sums[r][0]);
          } else {
            const V x = hn::Set(kD, number);
            unroll<kTileVectors - kHalf>([&](auto v) HWY_ATTR { sums[r][v] = hn::MulAdd(x, right[v], sums[r][v]); });
            if constexpr (kHalf) {
              constexpr int kLast = kTileVectors - 1;
              sums[r][kLast] = multiply_add_half(x, right[kLast], sums[r][kLast]);
            }
          }
        });
        b += kPanel;
      };
      std::int64_t k = 0;
      // Of one vector the loop's own instructions would take some hundredths of the time.
      if constexpr (kTileVectors == 1 && kTileRows > 8)
        for (; k + 2 <= left.length; k += 2) {
          add(k);
          add(k + 1);
        }
      for (; k < left.length; ++k) add(k);
    }
  const ClampedStore store = tile.store;
  float* const y = tile.y;
  const std::int64_t columns = tile.columns;
  if (store.clamps())
    unroll<kTileVectors>([&](auto v) HWY_ATTR {
      unroll<kTileRows>([&](auto r) HWY_ATTR { sums[r][v] = store.limited(kD, sums[r][v]); });
    });
  if (columns >= kTileVectors * kLanes) {
    unroll<kTileRows>([&](auto r) HWY_ATTR {
      unroll<kTileVectors>([&](auto v) HWY_ATTR { hn::StoreU(sums[r][v], kD, y + r * y_stride + v * kLanes); });
    });
    return;
  }
  unroll<kTileVectors>([&](auto v) HWY_ATTR {
    unroll<kTileRows>([&](auto r)
                          HWY_ATTR { store_columns(sums[r][v], y + r * y_stride + v * kLanes, columns - v * kLanes); });
  });
}

template <int kTileRows, int kTileVectors, bool kFetches, bool kHalf>
HWY_NOINLINE void multiply_tile(const LeftRows& left, const Tile& tile, std::int64_t y_stride) {
  compute_tile<kTileRows, kTileVectors, kFetches, kHalf>(left, tile, y_stride);
}

using TileFunction = void (*)(const LeftRows&, const Tile&, std::int64_t);

template <int kTileVectors, bool kFetches, bool kHalf, int... kRowsMinusOne>
TileFunction tile_function(int rows, std::integer_sequence<int, kRowsMinusOne...>) {
  static constexpr TileFunction kFunctions[] = {multiply_tile<kRowsMinusOne + 1, kTileVectors, kFetches, kHalf>...};
  return kFunctions[rows - 1];
}

template <int kTileVectors, int kMostRows, bool kFetches = true, bool kHalf = false>
TileFunction tile_function(std::int64_t rows) {
  return tile_function<kTileVectors, kFetches, kHalf>(static_cast<int>(rows),
                                                      std::make_integer_sequence<int, kMostRows>());
}

/// The most rows of a tile of so many columns, unless rows are few.
constexpr std::int64_t most_tile_rows(std::int64_t columns) {
  if (columns <= kNarrowVectors * kLanes) return kNarrowRows;
  if (columns <= kColumns) return kRows;
  return columns <= kTripleVectors * kLanes ? kTripleRows : kQuadRows;
}

/// The kernel for a tile of kVectorsOfFewRows and 1..kFewRows rows.
TileFunction function_of_few_rows(std::int64_t rows) { return tile_function<kVectorsOfFewRows, kFewRows, false>(rows); }

/// The kernel for a tile of so many columns, at most kMostVectors * kLanes, and of 1..most_tile_rows() rows. Of panels
/// that are `cached`, wide tiles fetch nothing: each load they leave out counts.
template <bool kHalf>
TileFunction tile_function(std::int64_t rows, std::int64_t columns, bool cached) {
  if (columns <= kNarrowVectors * kLanes) return tile_function<kNarrowVectors, kNarrowRows, true, kHalf>(rows);
  if constexpr (kHasWideTiles) {
    if (columns > kTripleVectors * kLanes)
      return cached ? tile_function<kQuadVectors, kQuadRows, false, kHalf>(rows)
                    : tile_function<kQuadVectors, kQuadRows, true, kHalf>(rows);
    if (columns > kColumns)
      return cached ? tile_function<kTripleVectors, kTripleRows, false, kHalf>(rows)
                    : tile_function<kTripleVectors, kTripleRows, true, kHalf>(rows);
  }
  return tile_function<kVectors, kRows, true, kHalf>(rows);
}

TileFunction tile_function(std::int64_t rows, std::int64_t columns, bool cached) {
  constexpr bool kHasHalves = kHalfLanes > 0;
  const bool half = (columns - 1) % kPanel < kHalfLanes;
  return half ? tile_function<kHasHalves>(rows, columns, cached) : tile_function<false>(rows, columns, cached);
}

/// Columns [first, first + columns) of all rows; they begin a panel and fit one group of vectors. `panels` is where
/// they begin at the first k of `a`.
void multiply_columns(const LeftRows& a, const float* panels, std::int64_t panel_stride, const Result& y,
                      std::int64_t first, std::int64_t columns, bool few_rows, const RightPanels& b) {
  const std::int64_t padded = panel_count(columns) * kPanel;
  // Tiles of about as many rows: one of a few rows would wait for its sums.
  const std::int64_t most_rows = few_rows ? kFewRows : most_tile_rows(columns);
  // A single tile, as of few rows that meet panel after panel, needs no division.
  const std::int64_t tiles = a.rows <= most_rows ? 1 : (a.rows + most_rows - 1) / most_rows;
  Tile tile{a.data,
            panels,
            panel_stride,
            y.bias != nullptr ? y.bias + first : nullptr,
            y.data + first,
            columns,
            y.ends ? ClampedStore(y.activation) : ClampedStore({}),
            y.resumes,
            b.backward ? panels - kColumns / kPanel * panel_stride : panels + panel_count(columns) * panel_stride,
            tiles == 1 ? padded : (padded + tiles - 1) / tiles,
            false};
  const std::int64_t least_rows = tiles == 1 ? a.rows : a.rows / tiles;
  const std::int64_t longer_tiles = a.rows - least_rows * tiles;
  // Rows behind the last may be another thread's, which would have to ask for their lines before it writes them.
  const bool rows_touch = a.row_stride == a.k();
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t rows = i < longer_tiles ? least_rows + 1 : least_rows;
    const TileFunction function = few_rows ? function_of_few_rows(rows) : tile_function(rows, columns, b.cached);
    tile.rows_touch = rows_touch && i + 1 < tiles;
    function(a, tile, y.row_stride);
    tile.a += rows * a.row_stride;
    tile.y += rows * y.row_stride;
    tile.ahead += tile.ahead_step * a.k();
  }
  if (!tile.store.complete()) activate_rows(y.activation, y.data + first, a.rows, y.row_stride, columns);
}

/// How panels are cut into tiles of columns for so many rows. Rows for which a tile of two panels is enough, but none
/// of three, meet each panel once: of panels that come from memory a second meeting takes time that fetching leaves
/// unused.
PanelTiles cut_panels(std::int64_t panels, std::int64_t rows) {
  constexpr std::int64_t kWidth = kColumns / kPanel;
  if (rows <= kFewRows) return PanelTiles::of_wide(panels, kWidth, kColumnsOfFewRows / kPanel);
  const bool meet_once = rows > kTripleRows && rows <= kRows;
  return kHasWideTiles && !meet_once ? PanelTiles::of_threes(panels, kWidth) : PanelTiles(panels, kWidth);
}

/// Panels that a single row meets at once, and the most where fewer would be left for the last time.
constexpr std::int64_t kStreams = kColumnsOfFewRows / kPanel;
constexpr int kMostStreams = 2 * kStreams - 1;
/// Lines of a panel that are read before those of the next one: a stream of several is fetched ahead better than single
/// ones, and processors that reorder instructions still add to the sums of all panels at once. More panels leave no
/// registers for as many numbers of the row.
template <int kCount>
constexpr int kLinesAtOnce = (kCount <= kStreams && HWY_ARCH_X86 != 0) ? 8 : 1;

/// What a single row meets: streams of panels, each `count` panels long, which lie `apart` panels from each other.
struct PanelStreams {
  const float* panel;         ///< the first one's first
  std::int64_t panel_stride;  ///< of one panel, in floats
  std::int64_t apart;
  std::int64_t count;
  const float* bias;  ///< of these columns, or null
  float* y;
  std::int64_t columns;  ///< of y from here on
  ClampedStore store;
  bool resumes;
};

/// One row times kCount streams; backward: from the last panel of each to the first.
template <int kCount>
HWY_NOINLINE void multiply_streams(const LeftRows& row, const PanelStreams& streams, bool backward) {
  const std::int64_t apart = streams.apart * streams.panel_stride;
  constexpr int kLines = kLinesAtOnce<kCount>;
  const float* const start = streams.resumes ? streams.y : streams.bias;
  const bool clamps = streams.store.clamps();
  for (std::int64_t i = 0; i < streams.count; ++i) {
    const std::int64_t panel = backward ? streams.count - 1 - i : i;
    const std::int64_t columns = streams.columns - panel * kPanel;
    const bool whole = columns >= ((kCount - 1) * streams.apart + 1) * kPanel;
    const auto offset = [&](auto stream, auto v) HWY_ATTR { return stream * streams.apart * kPanel + v * kLanes; };
    V sums[kCount][kVectorsPerPanel];
    unroll<kCount>([&](auto stream) HWY_ATTR {
      unroll<kVectorsPerPanel>([&](auto v) HWY_ATTR {
        sums[stream][v] = hn::Zero(kD);
        if (start == nullptr) return;
        const float* from = start + panel * kPanel + offset(stream, v);
        sums[stream][v] = whole ? hn::LoadU(kD, from) : load_columns(from, columns - offset(stream, v));
      });
    });
    const float* b = streams.panel + panel * streams.panel_stride;
    const auto add = [&](const float* x, auto stream, std::int64_t line) __attribute__((always_inline)) HWY_ATTR {
      const V number = hn::Set(kD, x[line]);
      const float* const vectors = b + stream * apart + line * kPanel;
      unroll<kVectorsPerPanel>([&](auto v) HWY_ATTR {
        sums[stream][v] = hn::MulAdd(number, hn::LoadU(kD, vectors + v * kLanes), sums[stream][v]);
      });
    };
    for (std::int64_t o = 0; o < row.outer; ++o)
      for (std::int64_t s = 0; s < row.segments; ++s) {
        const float* x = row.data + o * row.outer_stride + s * row.segment_stride;
        std::int64_t left = row.length;
        if constexpr (kLines > 1)
          for (; left >= kLines; left -= kLines) {
            unroll<kCount>([&](auto stream) __attribute__((always_inline)) HWY_ATTR {
              unroll<kLines>([&](auto line) __attribute__((always_inline)) HWY_ATTR { add(x, stream, line); });
            });
            x += kLines;
            b += kLines * kPanel;
          }
        for (; left > 0; --left) {
          unroll<kCount>([&](auto stream) __attribute__((always_inline)) HWY_ATTR { add(x, stream, 0); });
          ++x;
          b += kPanel;
        }
      }
    float* const y = streams.y + panel * kPanel;
    unroll<kCount>([&](auto stream) HWY_ATTR {
      unroll<kVectorsPerPanel>([&](auto v) HWY_ATTR {
        const V sum = clamps ? streams.store.limited(kD, sums[stream][v]) : sums[stream][v];
        float* const to = y + offset(stream, v);
        if (whole)
          hn::StoreU(sum, kD, to);
        else
          store_columns(sum, to, columns - offset(stream, v));
      });
    });
  }
}

using StreamsFunction = void (*)(const LeftRows&, const PanelStreams&, bool);

template <int... kCountMinusOne>
StreamsFunction streams_function(std::int64_t count, std::integer_sequence<int, kCountMinusOne...>) {
  static constexpr StreamsFunction kFunctions[] = {multiply_streams<kCountMinusOne + 1>...};
  return kFunctions[count - 1];
}

/// The kernel for 1..kMostStreams streams.
StreamsFunction streams_function(std::int64_t count) {
  return streams_function(count, std::make_integer_sequence<int, kMostStreams>());
}

/// All panels for a single row, which meets each once: small products are over before a plan of tiles is made. Most
/// panels make streams as long as possible, since weights come from afar; the last ones are a stream each.
void multiply_row(const LeftRows& row, const RightPanels& b, std::int64_t panel_stride, const Result& y) {
  const std::int64_t first = b.first * kPanel;
  const std::int64_t columns = std::min(b.last * kPanel, b.n) - first;
  if (columns <= 0) return;
  const ClampedStore store = y.ends ? ClampedStore(y.activation) : ClampedStore({});
  const std::int64_t count = std::max<std::int64_t>(panel_count(columns) / kStreams, 1) - 1;
  const auto streams_from = [&](std::int64_t panel, std::int64_t apart, std::int64_t length) {
    return PanelStreams{.panel = b.data + (b.first + panel) * panel_stride + b.first_k * kPanel,
                        .panel_stride = panel_stride,
                        .apart = apart,
                        .count = length,
                        .bias = y.bias != nullptr ? y.bias + first + panel * kPanel : nullptr,
                        .y = y.data + first + panel * kPanel,
                        .columns = columns - panel * kPanel,
                        .store = store,
                        .resumes = y.resumes};
  };
  const std::int64_t done = count * kStreams;
  const auto multiply_last = [&] {
    streams_function(panel_count(columns) - done)(row, streams_from(done, 1, 1), false);
  };
  if (b.backward) multiply_last();
  multiply_streams<kStreams>(row, streams_from(0, count, count), b.backward);
  if (!b.backward) multiply_last();
  if (!store.complete()) activate_rows(y.activation, y.data + first, 1, 0, columns);
}

/// All panels, for rows and a part of k that stay in the second-level cache.
void multiply_block(const LeftRows& a, const RightPanels& b, std::int64_t panel_stride, const Result& y) {
  const bool few_rows = a.rows <= kFewRows;
  const std::int64_t last = std::min(b.last * kPanel, b.n);
  const PanelTiles tiles = cut_panels(panel_count(last) - b.first, a.rows);
  for (std::int64_t i = 0; i < tiles.count(); ++i) {
    const std::int64_t tile = b.backward ? tiles.count() - 1 - i : i;
    const std::int64_t panel = b.first + tiles.first(tile);
    const std::int64_t first = panel * kPanel;
    const std::int64_t end = std::min((b.first + tiles.first(tile + 1)) * kPanel, last);
    multiply_columns(a, b.data + panel * panel_stride + b.first_k * kPanel, panel_stride, y, first, end - first,
                     few_rows && tiles.is_wide(tile), b);
  }
}

/// Left rows in pieces along k: the outermost level that has more than one element is cut.
class Pieces {
 public:
  explicit Pieces(const LeftRows& a) : a_(a) {
    if (a.outer > 1) {
      unit_ = a.segments * a.length;
      step_ = a.outer_stride;
      count_ = &LeftRows::outer;
    } else if (a.segments > 1) {
      unit_ = a.length;
      step_ = a.segment_stride;
      count_ = &LeftRows::segments;
    }
  }

  /// Those of about `k` elements from element `first` on, which begins a piece.
  LeftRows at(std::int64_t first, std::int64_t k) const {
    LeftRows piece = a_;
    if (first == 0 && k == a_.k()) return piece;
    const std::int64_t at = first / std::max<std::int64_t>(unit_, 1);
    piece.data += at * step_;
    piece.*count_ = std::min(std::max<std::int64_t>(k / std::max<std::int64_t>(unit_, 1), 1), a_.*count_ - at);
    return piece;
  }

 private:
  const LeftRows& a_;
  std::int64_t unit_ = 1;
  std::int64_t step_ = 1;
  std::int64_t LeftRows::*count_ = &LeftRows::length;
};

/// Rows that pass all panels before the next ones: with a piece of k elements they stay in the second-level cache, and
/// so do their results unless the panels would then be read too often.
std::int64_t chunk_rows(std::int64_t k, std::int64_t n) {
  constexpr std::int64_t kChunkFloats = 65536;
  constexpr std::int64_t kUsefulTiles = 240 / kRows;
  const std::int64_t tiles = kChunkFloats / (k * kRows + 1);
  const std::int64_t with_results = kChunkFloats / ((k + n) * kRows + 1);
  return std::max<std::int64_t>({std::min(tiles, kUsefulTiles), with_results, 1}) * kRows;
}

void multiply_target(const LeftRows& a, const RightPanels& b, const Result& y) {
  constexpr std::int64_t kPieceLength = 1024;
  const std::int64_t k = a.k();
  const std::int64_t panel_stride = (b.k != 0 ? b.k : k) * kPanel;
  if (a.rows == 1) return multiply_row(a, b, panel_stride, y);
  // Few rows read every weight once, however long they are.
  const bool few = a.rows <= kRows;
  const std::int64_t parts = !few && k > kPieceLength * 3 / 2 ? (k + kPieceLength - 1) / kPieceLength : 1;
  const std::int64_t piece_length = parts == 1 ? k : (k + parts - 1) / parts;
  // Tiles of the same columns follow each other in the order of rows.
  const std::int64_t columns = (b.last - b.first) * kPanel;
  const std::int64_t chunk = few ? kRows : chunk_rows(piece_length, columns);
  const Pieces pieces(a);
  for (std::int64_t m = 0; m < a.rows; m += chunk) {
    Result result = y;
    result.data += m * y.row_stride;
    RightPanels panels = b;
    for (std::int64_t done = 0; done < k || done == 0;) {
      LeftRows rows = pieces.at(done, piece_length);
      rows.rows = std::min(chunk, a.rows - m);
      rows.data += m * a.row_stride;
      panels.first_k = b.first_k + done;
      result.resumes = y.resumes || done > 0;
      done += std::max<std::int64_t>(rows.k(), 1);
      result.ends = y.ends && done >= k;
      multiply_block(rows, panels, panel_stride, result);
    }
  }
}

std::int64_t tile_rows_target() { return std::min<std::int64_t>(kRows, kMaxTileRows); }

/// Four numbers of four rows, each `stride` behind the one before: the transpose of them.
HWY_INLINE void transpose_four(const float* from, std::int64_t stride, float* to) {
  const hn::CappedTag<float, 4> d;
  const hn::Repartition<std::uint64_t, decltype(d)> d64;
  const auto a = hn::LoadU(d, from);
  const auto b = hn::LoadU(d, from + stride);
  const auto c = hn::LoadU(d, from + 2 * stride);
  const auto e = hn::LoadU(d, from + 3 * stride);
  const auto first_ab = hn::BitCast(d64, hn::InterleaveLower(d, a, b));
  const auto last_ab = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
  const auto first_ce = hn::BitCast(d64, hn::InterleaveLower(d, c, e));
  const auto last_ce = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, first_ab, first_ce)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, first_ab, first_ce)), d, to + kPanel);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, last_ab, last_ce)), d, to + 2 * kPanel);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, last_ab, last_ce)), d, to + 3 * kPanel);
}

/// A panel of a matrix whose columns are contiguous and of which n are left.
void pack_columns(const float* b, std::int64_t k, std::int64_t n, std::int64_t n_stride, float* to) {
  constexpr std::int64_t kLine = 16;  // a cache line of each column; the rows that are written stay in the cache
  for (; k > 0; k -= kLine, b += kLine, to += kLine * kPanel) {
    const std::int64_t rows = std::min(k, kLine);
    for (std::int64_t column = 0; column < kPanel; column += 4) {
      std::int64_t row = 0;
      if (column + 4 <= n)
        for (; row + 4 <= rows; row += 4)
          transpose_four(b + column * n_stride + row, n_stride, to + row * kPanel + column);
      for (; row < rows; ++row)
        for (std::int64_t i = column; i < column + 4; ++i) to[row * kPanel + i] = i < n ? b[i * n_stride + row] : 0.0F;
    }
  }
}

void pack_panels_target(const float* b, std::int64_t k, std::int64_t n, std::int64_t k_stride, std::int64_t n_stride,
                        std::int64_t first, std::int64_t last, float* packed) {
  for (std::int64_t panel = first; panel < last; ++panel) {
    const bool whole = (panel + 1) * kPanel <= n;
    const float* from = b + panel * kPanel * n_stride;
    float* to = packed + panel * k * kPanel;
    if (whole && n_stride == 1) {
      for (std::int64_t row = 0; row < k; ++row) std::copy_n(from + row * k_stride, kPanel, to + row * kPanel);
    } else if (k_stride == 1) {
      pack_columns(from, k, n - panel * kPanel, n_stride, to);
    } else {
      pack_panels(b, k, n, k_stride, n_stride, panel, panel + 1, packed);
    }
  }
}

}  // namespace
}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::gemm {

HWY_EXPORT(multiply_target);
HWY_EXPORT(tile_rows_target);
HWY_EXPORT(pack_panels_target);

void multiply(const LeftRows& a, const RightPanels& b, const Result& y) {
  HWY_DYNAMIC_DISPATCH(multiply_target)(a, b, y);
}

void pack_panels_simd(const float* b, std::int64_t k, std::int64_t n, std::int64_t k_stride, std::int64_t n_stride,
                      std::int64_t first, std::int64_t last, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_panels_target)(b, k, n, k_stride, n_stride, first, last, packed);
}

std::int64_t tile_rows() { return HWY_DYNAMIC_DISPATCH(tile_rows_target)(); }

}  // namespace bantam::ops::gemm
#endif
