// The innermost loops of gemm_i8.h: sums of products of a few rows and columns, in registers. Included by
// gemm_i8_simd.cpp inside Highway's per-target compilation.
#if defined(BANTAM_OPS_GEMM_I8_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_GEMM_I8_TILES_INL_H_
#undef BANTAM_OPS_GEMM_I8_TILES_INL_H_
#else
#define BANTAM_OPS_GEMM_I8_TILES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include "hwy/highway.h"
#include "ops/common/byte_products.h"
#include "ops/common/quad_products_simd-inl.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/gemm/gemm_i8_amx.h"
#include "ops/nn/gemm/gemm_i8_arm.h"
#include "ops/nn/gemm/large_tile_avx2-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::unroll;

using D32 = hn::CappedTag<std::int32_t, kPanel>;
constexpr D32 kD32;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D32()));
constexpr int kVectorsPerPanel = static_cast<int>(kPanel) / kLanes;

/// Rows of a tile whose left numbers are bytes and have 16 bits, and vectors of columns.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr int kByteRows = 12;
constexpr int kRows = 6;
constexpr int kVectors = 2;
#elif HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
constexpr int kByteRows = 6;
constexpr int kRows = 6;
constexpr int kVectors = 2;
#elif HWY_ARCH_ARM_A64
constexpr int kByteRows = kArmTileRows;
constexpr int kRows = 3;
constexpr int kVectors = kVectorsPerPanel;
#else
constexpr int kByteRows = 2;
constexpr int kRows = 2;
constexpr int kVectors = kVectorsPerPanel;
#endif
constexpr std::int64_t kColumns = kVectors * kLanes;
static_assert(kColumns % kPanel == 0 && kRows <= kByteRows && kByteRows <= kMaxTileRows);

/// Tiles of bytes may have more vectors and fewer rows where that loads less for each product: some processors load
/// one register of 64 bytes per cycle, while they multiply two.
constexpr bool kHasWideTiles = HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86;
constexpr int kMostVectors = kHasWideTiles ? 4 : kVectors;
constexpr std::int64_t kMostColumns = kMostVectors * kLanes;

/// Rows of a tile of bytes of so many vectors.
constexpr int byte_rows(int vectors) { return vectors <= kVectors ? kByteRows : vectors == 3 ? 9 : 6; }

/// The most rows whose sums are kept at once. On Arm, where sums pass through memory, those of several tiles are stored
/// together, by a function of its own.
constexpr std::int64_t kSumRows = HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86 ? kAmxRows
                                  : HWY_ARCH_ARM_A64                        ? 4 * kByteRows
                                                                            : kByteRows;

/// Can bytes be multiplied? Highway 1.0.3 asks the processor for VNNI before it chooses AVX3_DL, but not for AVX-VNNI.
inline bool multiplies_bytes() {
#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
  return byte_products() >= ByteProducts::kDot;
#else
  return (HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86) || HWY_ARCH_ARM_A64;
#endif
}

/// Are matrices of bytes multiplied? Only where bytes are anyway.
inline bool multiplies_matrices() {
  return HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86 && byte_products() >= ByteProducts::kMatrices;
}

/// What sum_tile subtracts from each byte of the left matrix: on Arm, that products of signed bytes do. They invert the
/// highest bit for it; so they take bytes as they lie, and invert others if asked to.
constexpr std::int32_t kSubtracted = HWY_ARCH_ARM_A64 ? 128 : 0;
constexpr bool kInvertsBits = HWY_ARCH_ARM_A64;

/// The sums of one tile or several, row after row of kMostColumns.
struct Sums {
  alignas(64) std::int32_t at[kSumRows * kMostColumns];
};

/// The end of a tile that keeps its sums.
struct KeptSums {
  Sums& sums;

  template <int kTileRows, int kTileVectors>
  HWY_INLINE void operator()(hn::Vec<D32> (&sum)[kTileRows][kTileVectors], std::int64_t /*tile*/) const {
    unroll<kTileRows>([&](auto r) HWY_ATTR {
      unroll<kTileVectors>([&](auto v)
                               HWY_ATTR { hn::Store(sum[r][v], kD32, sums.at + r * kMostColumns + v * kLanes); });
    });
  }
};

/// Some neighbouring quads of a tile's rows and panels, at least one; of rows in segments, all of them.
struct Span {
  std::int64_t quads = 0;         ///< of a segment
  std::int64_t row_stride = 0;    ///< numbers
  std::uint8_t flip = 0;          ///< with kInvertsBits: the bits of bytes that are inverted
  std::int64_t panel_stride = 0;  ///< bytes
  /// Weights that come next: a tile fetches so many bytes of them per quad, while it computes.
  const std::int8_t* ahead = nullptr;
  std::int64_t ahead_step = 0;
  /// Bytes of rows may lie in several segments of so many quads, each so many bytes behind the one before.
  std::int64_t segments = 1;
  std::int64_t segment_stride = 0;
};

/// The columns of a tile: `columns` of them, in panels from `panel` on, each of `stride` bytes.
struct TileColumns {
  const std::int8_t* panel = nullptr;
  std::int64_t stride = 0;
  std::int64_t columns = 0;
  /// What sums of bytes start at: the zero point of the left matrix taken off.
  HWY_ALIGN std::int32_t start[kMostColumns] = {};
  const std::int8_t* ahead = nullptr;  ///< the next tile's panels, of which a quad of rows fetches `ahead_step` bytes
  std::int64_t ahead_step = 0;

  /// Of up to `width` columns, for `tiles` tiles of rows; `zero`: what is to be taken off bytes.
  TileColumns(const RightPanelsI8& b, std::int64_t k, std::int64_t first, std::int64_t width, std::int32_t zero,
              std::int64_t tiles)
      : panel(b.data + first / kPanel * panel_bytes(k)),
        stride(panel_bytes(k)),
        columns(std::min({width, b.n - first, b.last * kPanel - first})) {
    if (first + width < std::min(b.n, b.last * kPanel)) {
      ahead = panel + width / kPanel * stride;
      ahead_step = (4 * width + tiles - 1) / tiles;
    } else {
      ahead = panel;
    }
    if (zero == 0) return;
    const std::int64_t sums = row_numbers(k) * kPanel;
    for (std::int64_t c = 0; c < columns; c += kLanes) {
      const auto* of_panel = reinterpret_cast<const std::int32_t*>(panel + c / kPanel * stride + sums);
      hn::Store(hn::Mul(hn::LoadU(kD32, of_panel + c % kPanel), hn::Set(kD32, -zero)), kD32, start + c);
    }
  }
};

/// A quad that is multiplied in two parts by products that take no larger ones: these bytes of a tile's rows are the
/// other part, or zeros.
struct SecondPart {
  std::int32_t quad = 0;
  std::uint8_t bytes[kByteRows][4] = {};
};

/// What sums of bytes start at, and what else they get.
struct Extras {
  const std::int32_t* columns = nullptr;  ///< a number for each column
  const std::int32_t* rows = nullptr;     ///< plus one for each row, if products ask for it
  /// If products ask for them: tile t has seconds[first_second[t]] up to seconds[first_second[t + 1]].
  const SecondPart* seconds = nullptr;
  const std::int32_t* first_second = nullptr;
};

/// The rows of a tile. Every third has a pointer; the two between are reached by an index, which keeps all in
/// registers.
template <int kTileRows, typename Number>
struct TileRows {
  const Number* base[(kTileRows + 2) / 3];
  std::int64_t stride;

  HWY_INLINE TileRows(const Number* a, std::int64_t row_stride) : stride(row_stride) {
    unroll<(kTileRows + 2) / 3>([&](auto g) HWY_ATTR { base[g] = a + 3 * g * row_stride; });
  }
  HWY_INLINE void skip(std::int64_t numbers) {
    unroll<(kTileRows + 2) / 3>([&](auto g) HWY_ATTR { base[g] += numbers; });
  }
  /// Two numbers or four bytes of row r, in all lanes.
  template <int r>
  HWY_INLINE hn::Vec<D32> broadcast(std::int64_t i) const {
    std::int32_t bits;
    __builtin_memcpy(&bits, base[r / 3] + r % 3 * stride + i, sizeof bits);
    return hn::Set(kD32, bits);
  }
};

/// Sums of pairs of products. With VNNI one instruction does what takes two, and `high` stays as it is; the assembler
/// knows it, though Highway does not name it to the compiler.
template <class V16, class V32>
HWY_INLINE V32 add_pair_products(V16 a, V16 b, V32 low, V32& high) {
#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86
  asm("vpdpwssd %2, %1, %0" : "+v"(low.raw) : "v"(a.raw), "v"(b.raw));
  (void)high;
  return low;
#else
  low = hn::ReorderWidenMulAccumulate(kD32, a, b, low, high);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE4
  // Without this gcc collects products before it adds them, and runs out of registers.
  asm volatile("" : "+x"(low.raw));
#endif
  return low;
#endif
}

/// Where vector v of a tile's columns lies in the panels from `panel` on.
template <int v>
HWY_INLINE const std::int8_t* vector_at(const std::int8_t* panel, std::int64_t panel_stride) {
  return panel + v / kVectorsPerPanel * panel_stride + v % kVectorsPerPanel * 4 * kLanes;
}

/// Adds the products of two numbers of each row, from the i-th on.
template <int kTileRows, int kTileVectors, class V16, class V32>
HWY_INLINE void add_pairs(const TileRows<kTileRows, std::int16_t>& rows, std::int64_t i,
                          const V16 (&right)[kTileVectors], V32 (&low)[kTileRows][kTileVectors],
                          V32 (&high)[kTileRows][kTileVectors]) {
  unroll<kTileRows>([&](auto r) HWY_ATTR {
    const auto x = hn::BitCast(hn::Repartition<std::int16_t, D32>(), rows.template broadcast<r>(i));
    unroll<kTileVectors>([&](auto v) HWY_ATTR { low[r][v] = add_pair_products(x, right[v], low[r][v], high[r][v]); });
  });
}

/// Sums of the products of numbers of 16 bits. The first and third number of each quad are multiplied by the even bytes
/// of a panel's 16-bit lanes, then the second and fourth by the odd ones: so bytes are widened by shifts. order_quads
/// has put the left numbers in this order. `start`: what sums begin with, a number for each column. Large tiles with
/// AVX2 fetch from `ahead` on.
template <int kTileRows, int kTileVectors>
HWY_INLINE void sum_numbers(const std::int16_t* a, const Span& span, const std::int8_t* ahead, const std::int8_t* panel,
                            const std::int32_t* start, hn::Vec<D32> (&sum)[kTileRows][kTileVectors]) {
#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
  if constexpr (kTileRows >= 5 && kTileVectors == 2)
    return sum_large_tile(a, span.row_stride, panel, span.quads, start, sum, {ahead, span.ahead_step});
#else
  static_cast<void>(ahead);
#endif
  using V32 = hn::Vec<D32>;
  const hn::Repartition<std::int16_t, D32> d16;
  const hn::Repartition<std::int8_t, D32> d8;
  V32 low[kTileRows][kTileVectors];
  V32 high[kTileRows][kTileVectors];
  unroll<kTileRows>([&](auto r) HWY_ATTR {
    unroll<kTileVectors>([&](auto v) HWY_ATTR { low[r][v] = high[r][v] = hn::Zero(kD32); });
  });
  const TileRows<kTileRows, std::int16_t> rows(a, span.row_stride);
  const std::int64_t panel_stride = span.panel_stride;
  std::int64_t i = 0;
  do {
    hn::Vec<decltype(d16)> right[kTileVectors];
    unroll<kTileVectors>([&](auto v) HWY_ATTR {
      right[v] = hn::BitCast(d16, hn::LoadU(d8, vector_at<v>(panel, panel_stride)));
      right[v] = hn::ShiftRight<8>(hn::ShiftLeft<8>(right[v]));
    });
    add_pairs<kTileRows, kTileVectors>(rows, i, right, low, high);
    // Loaded again: 16 registers have no room for what was loaded before. The compiler must not know that it is the
    // same.
    const std::int8_t* again = panel;
    asm("" : "+r"(again));
    unroll<kTileVectors>([&](auto v) HWY_ATTR {
      right[v] = hn::ShiftRight<8>(hn::BitCast(d16, hn::LoadU(d8, vector_at<v>(again, panel_stride))));
    });
    add_pairs<kTileRows, kTileVectors>(rows, i + 2, right, low, high);
    panel += 4 * kPanel;
    i += 4;
  } while (i < 4 * span.quads);
  unroll<kTileRows>([&](auto r) HWY_ATTR {
    // Only now: on Arm lanes of `low` and `high` are not yet columns before.
    unroll<kTileVectors>([&](auto v) HWY_ATTR {
      sum[r][v] = hn::Add(hn::RearrangeToOddPlusEven(low[r][v], high[r][v]), hn::LoadU(kD32, start + v * kLanes));
    });
  });
}

/// `tiles` tiles, one below the other.
template <int kTileRows, int kTileVectors, class End>
HWY_NOINLINE void sum_tiles_of(const std::int16_t* a, std::int64_t tiles, const Span& span, const std::int8_t* panel,
                               const std::int32_t* start, const End& end) {
  for (std::int64_t tile = 0; tile < tiles; ++tile, a += kTileRows * span.row_stride) {
    hn::Vec<D32> sum[kTileRows][kTileVectors];
    sum_numbers(a, span, span.ahead + tile * span.quads * span.ahead_step, panel, start, sum);
    end(sum, tile);
  }
}

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
/// The same of two vectors of columns whose weights have been widened.
template <int kTileRows, class End>
HWY_NOINLINE void sum_wide_tiles(const std::int16_t* a, std::int64_t tiles, const Span& span, const WidePanel& panel,
                                 const std::int32_t* start, const End& end) {
  for (std::int64_t tile = 0; tile < tiles; ++tile, a += kTileRows * span.row_stride) {
    hn::Vec<D32> sum[kTileRows][2];
    sum_large_tile(a, span.row_stride, panel.numbers(), span.quads, start, sum,
                   {span.ahead + tile * span.quads * span.ahead_step, span.ahead_step});
    end(sum, tile);
  }
}
#endif

/// Numbers 0, 1, 2, 3 of each quad become 0, 2, 1, 3.
inline void order_quads(std::int16_t* numbers, std::int64_t count) {
  const hn::CappedTag<std::int16_t, 16> d;
  const hn::Repartition<std::uint8_t, decltype(d)> d8;
  alignas(16) static constexpr std::uint8_t kOrder[16] = {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15};
  const auto order = hn::LoadDup128(d8, kOrder);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::BitCast(d, hn::TableLookupBytes(hn::BitCast(d8, hn::LoadU(d, numbers + i)), order)), d, numbers + i);
  for (; i < count; i += 4) std::swap(numbers[i + 1], numbers[i + 2]);
}

constexpr int kNarrow = std::max(kVectors / 2, 1);

using TileFunction = void (*)(const std::int16_t*, std::int64_t, const Span&, const std::int8_t*, const std::int32_t*,
                              const KeptSums&);

template <int kTileVectors, int... kRowsMinusOne>
TileFunction tile_function(std::int64_t rows, std::integer_sequence<int, kRowsMinusOne...>) {
  static constexpr TileFunction kFunctions[] = {sum_tiles_of<kRowsMinusOne + 1, kTileVectors, KeptSums>...};
  return kFunctions[rows - 1];
}

inline void sum_tile(const std::int16_t* a, std::int64_t rows, const Span& span, const std::int8_t* panel,
                     std::int64_t columns, Sums& sums) {
  constexpr auto kCounts = std::make_integer_sequence<int, kRows>();
  const auto function =
      columns <= kNarrow * kLanes ? tile_function<kNarrow>(rows, kCounts) : tile_function<kVectors>(rows, kCounts);
  alignas(64) static constexpr std::int32_t kZeros[kColumns] = {};
  function(a, 1, span, panel, kZeros, KeptSums{sums});
}

#if (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2) && HWY_ARCH_X86
/// VNNI's products of bytes. Others say likewise how weights are loaded and products added; saturating_pairs-inl.h.
struct QuadProducts {
  static constexpr bool kWaits = true;        ///< an addition to a sum takes longer than a cycle
  static constexpr bool kHasRows = false;     ///< see Extras
  static constexpr bool kHasSeconds = false;  ///< see Extras
  using Right = hn::Vec<D32>;

  HWY_INLINE Right load(const std::int8_t* from) const {
    return hn::BitCast(kD32, hn::LoadU(hn::Repartition<std::int8_t, D32>(), from));
  }
  HWY_INLINE hn::Vec<D32> add(hn::Vec<D32> sum, hn::Vec<D32> x, Right w) const {
    return ops::HWY_NAMESPACE::add_quad_products(sum, x, w);
  }
};

#if HWY_TARGET == HWY_AVX3_DL
/// The same where no more than half of a tile's last vector has columns: processors that compute with vectors of 64
/// bytes in two halves take half the time for it.
struct HalfQuadProducts : QuadProducts {
  /// The first half of the sum; the rest is 0.
  HWY_INLINE hn::Vec<D32> add_half(hn::Vec<D32> sum, hn::Vec<D32> x, Right w) const {
    asm("vpdpbusd %t2, %t1, %t0" : "+v"(sum.raw) : "v"(x.raw), "v"(w.raw));
    return sum;
  }
};
#endif

/// Adds the products of one quad of each row.
template <int kTileRows, int kTileVectors, class Products, class V32>
HWY_INLINE void add_quads(const Products& products, const TileRows<kTileRows, std::uint8_t>& rows, std::int64_t quad,
                          const std::int8_t* panel, std::int64_t panel_stride, V32 (&sum)[kTileRows][kTileVectors]) {
  typename Products::Right right[kTileVectors];
  unroll<kTileVectors>(
      [&](auto v) HWY_ATTR { right[v] = products.load(vector_at<v>(panel + 4 * kPanel * quad, panel_stride)); });
  unroll<kTileRows>([&](auto r) HWY_ATTR {
    const V32 x = rows.template broadcast<r>(4 * quad);
    unroll<kTileVectors>([&](auto v) HWY_ATTR {
      if constexpr (v + 1 == kTileVectors && requires { products.add_half(x, x, right[v]); }) {
        sum[r][v] = products.add_half(sum[r][v], x, right[v]);
      } else {
        sum[r][v] = products.add(sum[r][v], x, right[v]);
      }
    });
  });
}

template <class Products, int kTileRows, int kTileVectors, class End>
HWY_INLINE void sum_bytes_of(const std::uint8_t* a, std::int64_t tile, const Span& span, const std::int8_t* ahead,
                             const std::int8_t* panel, const Extras& extras, const End& end) {
  using V32 = hn::Vec<D32>;
  // Few rows have too few sums to hide the time that an addition takes: they have several for each.
  constexpr int kSumsOfVector = kTileRows * std::max(kTileVectors / 2, 1);
  constexpr int kChains = !Products::kWaits || kSumsOfVector > 3 ? 1 : kSumsOfVector == 1 ? 4 : 2;
  const Products products;
  V32 sum[kChains][kTileRows][kTileVectors];
  unroll<kChains>([&](auto c) HWY_ATTR {
    unroll<kTileRows>([&](auto r) HWY_ATTR {
      unroll<kTileVectors>([&](auto v) HWY_ATTR {
        sum[c][r][v] = c == 0 ? hn::LoadU(kD32, extras.columns + v * kLanes) : hn::Zero(kD32);
        if constexpr (Products::kHasRows)
          sum[c][r][v] = hn::Add(sum[c][r][v], hn::Set(kD32, extras.rows[tile * kTileRows + r]));
      });
    });
  });
  TileRows<kTileRows, std::uint8_t> rows(a, span.row_stride);
  const std::int64_t panel_stride = span.panel_stride;
  const std::int64_t quads = span.quads;
  const std::int8_t* weights = panel;
  // There is at least one quad: known to the compiler, sums stay where they begin.
  for (std::int64_t segment = span.segments;;) {
    std::int64_t quad = 0;
    if constexpr (kChains == 1) {
      do {
        __builtin_prefetch(ahead, 0, 2);
        ahead += span.ahead_step;
        add_quads<kTileRows, kTileVectors>(products, rows, quad, weights, panel_stride, sum[0]);
      } while (++quad < quads);
    } else {
      for (; quad + kChains <= quads; quad += kChains)
        unroll<kChains>([&](auto c) HWY_ATTR {
          add_quads<kTileRows, kTileVectors>(products, rows, quad + c, weights, panel_stride, sum[c]);
        });
      for (; quad < quads; ++quad)
        add_quads<kTileRows, kTileVectors>(products, rows, quad, weights, panel_stride, sum[0]);
    }
    if (--segment == 0) break;
    weights += 4 * kPanel * quads;
    rows.skip(span.segment_stride);
  }
  if constexpr (Products::kHasSeconds) {
    const SecondPart* second = extras.seconds + extras.first_second[tile];
    for (const SecondPart* behind = extras.seconds + extras.first_second[tile + 1]; second != behind; ++second) {
      const TileRows<kTileRows, std::uint8_t> parts(second->bytes[0], sizeof second->bytes[0]);
      add_quads<kTileRows, kTileVectors>(products, parts, 0, panel + second->quad * 4 * kPanel, panel_stride, sum[0]);
    }
  }
  unroll<kTileRows>([&](auto r) HWY_ATTR {
    unroll<kTileVectors>([&](auto v) HWY_ATTR {
      unroll<kChains - 1>([&](auto c) HWY_ATTR { sum[0][r][v] = hn::Add(sum[0][r][v], sum[c + 1][r][v]); });
    });
  });
  end(sum[0], tile);
}

/// `tiles` tiles, one below the other.
template <class Products, int kTileRows, int kTileVectors, class End>
HWY_NOINLINE void sum_byte_tiles_of(const std::uint8_t* a, std::int64_t tiles, const Span& span,
                                    const std::int8_t* panel, const Extras& extras, const End& end) {
  const std::int8_t* ahead = span.ahead;
  for (std::int64_t tile = 0; tile < tiles; ++tile, a += kTileRows * span.row_stride) {
    sum_bytes_of<Products, kTileRows, kTileVectors>(a, tile, span, ahead, panel, extras, end);
    ahead += span.segments * span.quads * span.ahead_step;
  }
}

using BytesFunction = void (*)(const std::uint8_t*, std::int64_t, const Span&, const std::int8_t*, const Extras&,
                               const KeptSums&);

template <class Products, int kTileVectors, int... kRowsMinusOne>
BytesFunction bytes_function(std::int64_t rows, std::integer_sequence<int, kRowsMinusOne...>) {
  static constexpr BytesFunction kFunctions[] = {
      sum_byte_tiles_of<Products, kRowsMinusOne + 1, kTileVectors, KeptSums>...};
  return kFunctions[rows - 1];
}

template <class Products, int kTileVectors>
BytesFunction bytes_function(std::int64_t rows) {
  return bytes_function<Products, kTileVectors>(rows, std::make_integer_sequence<int, byte_rows(kTileVectors)>());
}

template <class Products>
BytesFunction bytes_function(std::int64_t rows, std::int64_t columns) {
  if (columns <= kNarrow * kLanes) return bytes_function<Products, kNarrow>(rows);
  if constexpr (kHasWideTiles) {
    if (columns > 3 * kLanes) return bytes_function<Products, 4>(rows);
    if (columns > kColumns) return bytes_function<Products, 3>(rows);
  }
  return bytes_function<Products, kVectors>(rows);
}

template <class Products>
void sum_bytes(const std::uint8_t* a, std::int64_t rows, const Span& span, const std::int8_t* panel,
               std::int64_t columns, const Extras& extras, Sums& sums) {
  bytes_function<Products>(rows, columns)(a, 1, span, panel, extras, KeptSums{sums});
}

inline void sum_tile(const std::uint8_t* a, std::int64_t rows, const Span& span, const std::int8_t* panel,
                     std::int64_t columns, const std::int32_t* start, Sums& sums) {
  sum_bytes<QuadProducts>(a, rows, span, panel, columns, {.columns = start}, sums);
}
#elif HWY_ARCH_ARM_A64
/// What sums bytes with such products.
inline auto arm_sums(ByteProducts products) {
  static constexpr decltype(&sum_bytes_neon) kFunctions[] = {sum_bytes_neon, sum_bytes_dotprod, sum_bytes_i8mm};
  return kFunctions[static_cast<int>(products)];
}

inline ArmTile arm_tile(const std::uint8_t* a, std::int64_t rows, const Span& span, const std::int8_t* panel,
                        std::int64_t columns, const std::int32_t* start, Sums& sums) {
  return {.a = a,
          .row_stride = span.row_stride,
          .flip = static_cast<std::uint8_t>(span.flip ^ 0x80),
          .rows = rows,
          .quads = span.quads,
          .panel = panel,
          .narrow = columns <= kNarrow * kLanes,
          .start = start,
          .sums = sums.at};
}

inline void sum_tile(const std::uint8_t* a, std::int64_t rows, const Span& span, const std::int8_t* panel,
                     std::int64_t columns, const std::int32_t* start, Sums& sums) {
  arm_sums(byte_products())(arm_tile(a, rows, span, panel, columns, start, sums));
}
#else
inline void sum_tile(const std::uint8_t* /*a*/, std::int64_t /*rows*/, const Span& /*span*/,
                     const std::int8_t* /*panel*/, std::int64_t /*columns*/, const std::int32_t* /*start*/,
                     Sums& /*sums*/) {}
#endif

}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
