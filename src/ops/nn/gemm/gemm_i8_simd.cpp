// The micro-kernel of gemm_i8.h. A tile of R rows and V vectors of columns is accumulated in registers, then leaves
// through a small buffer to the stage that scales it.
#include <algorithm>
#include <limits>

#include "ops/nn/gemm/gemm_i8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/gemm/gemm_i8_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/activate_rows_simd-inl.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::activate_rows;
using ops::HWY_NAMESPACE::AffineVector;
using ops::HWY_NAMESPACE::load_channels;
using ops::HWY_NAMESPACE::load_zero_points;
using ops::HWY_NAMESPACE::RequantizeVector;
using ops::HWY_NAMESPACE::store_lanes;
using ops::HWY_NAMESPACE::unroll;

using D32 = hn::CappedTag<std::int32_t, kPanel>;
constexpr D32 kD32;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D32()));
constexpr int kVectorsPerPanel = static_cast<int>(kPanel) / kLanes;

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr int kRows = 12;
constexpr int kVectors = 2;
#elif HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
constexpr int kRows = 6;
constexpr int kVectors = 2;
#else
constexpr int kRows = 2;
constexpr int kVectors = kVectorsPerPanel;
#endif
constexpr std::int64_t kColumns = kVectors * kLanes;
static_assert(kColumns % kPanel == 0 && kRows <= kMaxTileRows);

/// The sums of one tile, row after row of kColumns.
struct Sums {
  HWY_ALIGN std::int32_t at[kRows * kColumns];
};

/// The same of more products than int32 holds.
struct WideSums {
  std::int64_t at[kRows * kColumns];
};

/// Pairs of products of int16 and int8 that cannot overflow int32: 510 products of at most 2^22.
constexpr std::int64_t kSafePairs = 255;

/// Some neighbouring pairs of a tile's rows and panels.
struct Span {
  std::int64_t pairs = 0;
  std::int64_t row_stride = 0;    ///< numbers
  std::int64_t panel_stride = 0;  ///< bytes
};

/// Bytes of a panel, by pairs of the whole K.
constexpr std::int64_t panel_bytes(std::int64_t pairs) { return pairs * 2 * kPanel; }

#if HWY_TARGET == HWY_SCALAR
void sum_tile(const std::int16_t* a, std::int64_t rows, const Span& span, const std::int8_t* panel, std::int64_t,
              Sums& sums) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < kPanel; ++c) {
      std::uint32_t sum = 0;
      for (std::int64_t k = 0; k < 2 * span.pairs; ++k)
        sum += static_cast<std::uint32_t>(a[r * span.row_stride + k] * panel[(k / 2 * kPanel + c) * 2 + k % 2]);
      sums.at[r * kColumns + c] = static_cast<std::int32_t>(sum);
    }
}
#else
/// Sums of pairs of products. With VNNI one instruction does what takes two, and `high` stays as it is. Highway 1.0.3
/// asks the processor for VNNI before it chooses AVX3_DL, but does not name it to the compiler; the assembler knows it.
template <class V16, class V32>
HWY_INLINE V32 add_pair_products(V16 a, V16 b, V32 low, V32& high) {
#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86
  asm("vpdpwssd %2, %1, %0" : "+v"(low.raw) : "v"(a.raw), "v"(b.raw));
  (void)high;
  return low;
#else
  return hn::ReorderWidenMulAccumulate(kD32, a, b, low, high);
#endif
}

template <int kTileRows, int kTileVectors>
HWY_NOINLINE void sum_tile_of(const std::int16_t* a, const Span& span, const std::int8_t* panel, Sums& sums) {
  using V32 = hn::Vec<D32>;
  const hn::Repartition<std::int16_t, D32> d16;
  const hn::Rebind<std::int8_t, decltype(d16)> d8;
  V32 low[kTileRows][kTileVectors];
  V32 high[kTileRows][kTileVectors];
  unroll<kTileRows>([&](auto r) HWY_ATTR {
    unroll<kTileVectors>([&](auto v) HWY_ATTR { low[r][v] = high[r][v] = hn::Zero(kD32); });
  });
  // Every third row has a pointer; the two between are reached by an index, which keeps all in registers.
  const std::int64_t row = span.row_stride;
  const std::int64_t panel_stride = span.panel_stride;
  const std::int64_t pairs = span.pairs;
  const std::int16_t* base[(kTileRows + 2) / 3];
  unroll<(kTileRows + 2) / 3>([&](auto g) HWY_ATTR { base[g] = a + 3 * g * row; });
  for (std::int64_t pair = 0; pair < pairs; ++pair, panel += 2 * kPanel) {
    hn::Vec<decltype(d16)> right[kTileVectors];
    unroll<kTileVectors>([&](auto v) HWY_ATTR {
      const std::int8_t* from = panel + v / kVectorsPerPanel * panel_stride + v % kVectorsPerPanel * 2 * kLanes;
      right[v] = hn::PromoteTo(d16, hn::LoadU(d8, from));
    });
    unroll<kTileRows>([&](auto r) HWY_ATTR {
      std::int32_t both;
      __builtin_memcpy(&both, base[r / 3] + r % 3 * row + 2 * pair, sizeof both);
      const auto x = hn::BitCast(d16, hn::Set(kD32, both));
      unroll<kTileVectors>([&](auto v) HWY_ATTR { low[r][v] = add_pair_products(x, right[v], low[r][v], high[r][v]); });
    });
  }
  unroll<kTileRows>([&](auto r) HWY_ATTR {
    unroll<kTileVectors>([&](auto v) HWY_ATTR {
      hn::Store(hn::RearrangeToOddPlusEven(low[r][v], high[r][v]), kD32, sums.at + r * kColumns + v * kLanes);
    });
  });
}

using TileFunction = void (*)(const std::int16_t*, const Span&, const std::int8_t*, Sums&);

template <int kTileVectors, int... kRowsMinusOne>
TileFunction tile_function(std::int64_t rows, std::integer_sequence<int, kRowsMinusOne...>) {
  constexpr TileFunction kFunctions[] = {sum_tile_of<kRowsMinusOne + 1, kTileVectors>...};
  return kFunctions[rows - 1];
}

void sum_tile(const std::int16_t* a, std::int64_t rows, const Span& span, const std::int8_t* panel,
              std::int64_t columns, Sums& sums) {
  constexpr auto kCounts = std::make_integer_sequence<int, kRows>();
  constexpr int kNarrow = std::max(kVectors / 2, 1);
  const auto function =
      columns <= kNarrow * kLanes ? tile_function<kNarrow>(rows, kCounts) : tile_function<kVectors>(rows, kCounts);
  function(a, span, panel, sums);
}
#endif

template <typename Result>
bool subtracts_row_sums(const Result& /*y*/) {
  return false;
}
template <typename Y>
bool subtracts_row_sums(const AffineResult<Y>& y) {
  return !y.zero_points.are_zero();
}

/// Scales the sums of `rows` rows and columns [first, first + columns), and stores them at row m on. `row_sums`: of the
/// left matrix, from row m on; not used by most.
void finish_tile(const Int8Result& y, const Sums& sums, std::int64_t m, std::int64_t rows, std::int64_t first,
                 std::int64_t columns, const std::int32_t* /*row_sums*/) {
  const hn::Rebind<std::int8_t, D32> d8;
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, columns - c);
    const RequantizeVector<D32> requantize(kD32, y.requantize, first + c, lanes);
    for (std::int64_t r = 0; r < rows; ++r)
      store_lanes(d8, hn::DemoteTo(d8, requantize(hn::LoadU(kD32, sums.at + r * kColumns + c))), lanes,
                  y.data + (m + r) * y.row_stride + first + c);
  }
}

void finish_tile(const Int16Result& y, const WideSums& sums, std::int64_t m, std::int64_t rows, std::int64_t first,
                 std::int64_t columns, const std::int32_t* /*row_sums*/) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      y.data[(m + r) * y.row_stride + first + c] =
          y.requantize(static_cast<std::uint64_t>(sums.at[r * kColumns + c]), static_cast<std::int32_t>(first + c));
}

void finish_tile(const HybridResult& y, const Sums& sums, std::int64_t m, std::int64_t rows, std::int64_t first,
                 std::int64_t columns, const std::int32_t* /*row_sums*/) {
  const hn::Rebind<float, D32> df;
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, columns - c);
    const auto scale =
        y.scaler.per_channel ? load_channels(df, y.scaler.scale + first + c, lanes) : hn::Set(df, y.scaler.scale[0]);
    const auto bias = y.scaler.bias != nullptr ? load_channels(df, y.scaler.bias + first + c, lanes) : hn::Zero(df);
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto sum = hn::ConvertTo(df, hn::LoadU(kD32, sums.at + r * kColumns + c));
      const auto product = hn::Mul(hn::Mul(sum, hn::Set(df, y.row_scales[m + r])), scale);
      store_lanes(df, hn::Add(product, bias), lanes, y.data + (m + r) * y.row_stride + first + c);
    }
  }
  activate_rows(y.activation, y.data + m * y.row_stride + first, rows, y.row_stride, columns);
}

template <typename Y>
void finish_tile(const AffineResult<Y>& y, const Sums& sums, std::int64_t m, std::int64_t rows, std::int64_t first,
                 std::int64_t columns, const std::int32_t* row_sums) {
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, columns - c);
    const AffineVector<D32> scale(kD32, y.scaler, first + c, lanes);
    auto zeros = hn::Zero(kD32);
    if (subtracts_row_sums(y)) zeros = load_zero_points(kD32, y.zero_points, first + c, lanes);
    for (std::int64_t r = 0; r < rows; ++r) {
      auto sum = hn::LoadU(kD32, sums.at + r * kColumns + c);
      if (subtracts_row_sums(y)) sum = hn::Sub(sum, hn::Mul(zeros, hn::Set(kD32, row_sums[r])));
      scale.store(sum, lanes, y.data + (m + r) * y.row_stride + first + c);
    }
  }
  if constexpr (std::is_same_v<Y, float>)
    activate_rows(y.scaler.activation, y.data + m * y.row_stride + first, rows, y.row_stride, columns);
}

/// A piece of the left matrix: some rows, of which pairs [first, first + pairs).
struct Piece {
  const std::int16_t* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t first = 0;
  std::int64_t pairs = 0;
};

void clear(Sums& sums, std::int64_t rows) { std::fill_n(sums.at, rows * kColumns, 0); }
void clear(WideSums& sums, std::int64_t rows) { std::fill_n(sums.at, rows * kColumns, std::int64_t{0}); }

void add(Sums& sums, const Sums& part, std::int64_t rows) {
  for (std::int64_t c = 0; c < rows * kColumns; c += kLanes)
    hn::StoreU(hn::Add(hn::LoadU(kD32, sums.at + c), hn::LoadU(kD32, part.at + c)), kD32, sums.at + c);
}
void add(WideSums& sums, const Sums& part, std::int64_t rows) {
  for (std::int64_t c = 0; c < rows * kColumns; ++c) sums.at[c] += part.at[c];
}

/// Adds the products of a piece with as much of the panels from `panel` on, each of `panel_stride` bytes. Columns
/// beyond `columns` are undefined.
template <typename TileSums>
HWY_INLINE void add_products(const Piece& a, const std::int8_t* panel, std::int64_t panel_stride, std::int64_t columns,
                             TileSums& sums) {
  constexpr std::int64_t kMost =
      std::is_same_v<TileSums, WideSums> ? kSafePairs : std::numeric_limits<std::int64_t>::max();
  for (std::int64_t done = 0; done < a.pairs; done += std::min(kMost, a.pairs - done)) {
    Sums part;
    if (columns < kColumns) clear(part, a.rows);
    const Span span{std::min(kMost, a.pairs - done), 2 * a.pairs, panel_stride};
    sum_tile(a.data + 2 * done, a.rows, span, panel + (a.first + done) * 2 * kPanel, columns, part);
    add(sums, part, a.rows);
  }
}

template <typename TileSums>
HWY_INLINE void sum_products(const Piece& a, const std::int8_t* panel, std::int64_t panel_stride, std::int64_t columns,
                             TileSums& sums) {
  if constexpr (std::is_same_v<TileSums, Sums>) {
    sum_tile(a.data, a.rows, {a.pairs, 2 * a.pairs, panel_stride}, panel + a.first * 2 * kPanel, columns, sums);
  } else {
    clear(sums, a.rows);
    add_products(a, panel, panel_stride, columns, sums);
  }
}

/// sums[m] += the sum of row m, wrapping.
void add_rows(const Piece& a, std::int32_t* sums) {
  for (std::int64_t m = 0; m < a.rows; ++m) {
    auto sum = static_cast<std::uint32_t>(sums[m]);
    for (std::int64_t i = m * 2 * a.pairs; i < (m + 1) * 2 * a.pairs; ++i)
      sum += static_cast<std::uint32_t>(std::int32_t{a.data[i]});
    sums[m] = static_cast<std::int32_t>(sum);
  }
}

/// Calls f(first column, columns) for the tiles of b.
template <typename F>
HWY_INLINE void for_each_tile(const RightPanelsI8& b, F f) {
  for (std::int64_t n = b.first * kPanel; n < std::min(b.last * kPanel, b.n); n += kColumns)
    f(n, std::min({kColumns, b.n - n, b.last * kPanel - n}));
}

/// Rows are widened in full, `block` at a time.
template <typename TileSums, typename Result>
HWY_INLINE void multiply_rows(const LeftSourceI16& a, std::int16_t* numbers, std::int64_t block, const RightPanelsI8& b,
                              const Result& y) {
  const std::int64_t pairs = pair_count(a.k);
  TileSums sums;
  std::int32_t row_sums[kMaxBlockRows];
  for (std::int64_t start = 0; start < a.rows; start += block) {
    const std::int64_t count = std::min(block, a.rows - start);
    a.gather(a.context, start, count, 0, a.k, numbers);
    if (subtracts_row_sums(y)) {
      std::fill_n(row_sums, count, 0);
      add_rows({numbers, count, 0, pairs}, row_sums);
    }
    for_each_tile(b, [&](std::int64_t n, std::int64_t columns) HWY_ATTR {
      const std::int8_t* panel = b.data + n / kPanel * panel_bytes(pairs);
      for (std::int64_t m = 0; m < count; m += kRows) {
        const std::int64_t rows = std::min<std::int64_t>(kRows, count - m);
        sum_products({numbers + m * 2 * pairs, rows, 0, pairs}, panel, panel_bytes(pairs), columns, sums);
        finish_tile(y, sums, start + m, rows, n, columns, row_sums + m);
      }
    });
  }
}

/// One tile of rows after the other, of which `part` numbers are widened at a time, once per tile of columns.
template <typename TileSums, typename Result>
HWY_INLINE void multiply_parts(const LeftSourceI16& a, std::int16_t* numbers, std::int64_t part, const RightPanelsI8& b,
                               const Result& y) {
  TileSums sums;
  const std::int64_t panel_stride = panel_bytes(pair_count(a.k));
  for (std::int64_t m = 0; m < a.rows; m += kRows) {
    const std::int64_t rows = std::min<std::int64_t>(kRows, a.rows - m);
    for_each_tile(b, [&](std::int64_t n, std::int64_t columns) HWY_ATTR {
      std::int32_t row_sums[kRows] = {};
      if (a.k == 0) clear(sums, rows);
      for (std::int64_t first = 0; first < a.k; first += part) {
        const std::int64_t count = std::min(part, a.k - first);
        a.gather(a.context, m, rows, first, count, numbers);
        const Piece piece{numbers, rows, first / 2, pair_count(count)};
        const std::int8_t* panel = b.data + n / kPanel * panel_stride;
        if (first == 0) {
          sum_products(piece, panel, panel_stride, columns, sums);
        } else {
          add_products(piece, panel, panel_stride, columns, sums);
        }
        if (subtracts_row_sums(y)) add_rows(piece, row_sums);
      }
      finish_tile(y, sums, m, rows, n, columns, row_sums);
    });
  }
}

template <typename TileSums, typename Result>
HWY_INLINE void multiply_all(const LeftSourceI16& a, const Workspace& workspace, const RightPanelsI8& b,
                             const Result& y) {
  if (a.rows == 0) return;
  const std::int64_t tile = std::min<std::int64_t>(kRows, a.rows);
  const std::int64_t fit = workspace.count / std::max<std::int64_t>(row_numbers(a.k), 1);
  // A tile of few rows costs less than sums that start and end again, and rows that are widened for each tile of
  // columns.
  constexpr std::int64_t kFewRows = 4;
  if (fit >= std::min(tile, kFewRows)) {
    // All rows, full tiles, or tiles of about the same size.
    const std::int64_t full = std::min(fit / kRows * kRows, kMaxBlockRows);
    const std::int64_t tiles = (a.rows + fit - 1) / fit;
    const std::int64_t block = fit >= a.rows && a.rows <= kMaxBlockRows ? a.rows
                               : fit < kRows                            ? (a.rows + tiles - 1) / tiles
                                                                        : full;
    multiply_rows<TileSums>(a, workspace.numbers, block, b, y);
  } else {
    multiply_parts<TileSums>(a, workspace.numbers, std::max<std::int64_t>(workspace.count / tile / 2 * 2, 2), b, y);
  }
}

void multiply_int8(const LeftSourceI16& a, const Workspace& w, const RightPanelsI8& b, const Int8Result& y) {
  multiply_all<Sums>(a, w, b, y);
}

void multiply_int16(const LeftSourceI16& a, const Workspace& w, const RightPanelsI8& b, const Int16Result& y) {
  multiply_all<WideSums>(a, w, b, y);
}

void multiply_hybrid(const LeftSourceI16& a, const Workspace& w, const RightPanelsI8& b, const HybridResult& y) {
  multiply_all<Sums>(a, w, b, y);
}

void multiply_affine_u8(const LeftSourceI16& a, const Workspace& w, const RightPanelsI8& b,
                        const AffineResult<std::uint8_t>& y) {
  multiply_all<Sums>(a, w, b, y);
}

void multiply_affine_i32(const LeftSourceI16& a, const Workspace& w, const RightPanelsI8& b,
                         const AffineResult<std::int32_t>& y) {
  multiply_all<Sums>(a, w, b, y);
}

void multiply_affine_f32(const LeftSourceI16& a, const Workspace& w, const RightPanelsI8& b,
                         const AffineResult<float>& y) {
  multiply_all<Sums>(a, w, b, y);
}

template <typename T>
HWY_INLINE void widen_row(const T* from, std::int64_t n, std::int32_t zero_point, std::int16_t* to) {
  const hn::ScalableTag<std::int16_t> d16;
  const hn::Rebind<T, decltype(d16)> d8;
  const auto zero = hn::Set(d16, static_cast<std::int16_t>(zero_point));
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d16));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Sub(hn::PromoteTo(d16, hn::LoadU(d8, from + i)), zero), d16, to + i);
  for (; i < n; ++i) to[i] = static_cast<std::int16_t>(from[i] - zero_point);
}

void widen_i8(const std::int8_t* from, std::int64_t n, std::int32_t zero_point, std::int16_t* to) {
  widen_row(from, n, zero_point, to);
}

void widen_u8(const std::uint8_t* from, std::int64_t n, std::int32_t zero_point, std::int16_t* to) {
  widen_row(from, n, zero_point, to);
}

float largest_magnitude_target(const float* x, std::int64_t n, float previous) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto largest = hn::Set(d, previous);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto magnitude = hn::Abs(hn::LoadU(d, x + i));
    largest = hn::IfThenElse(hn::Gt(magnitude, largest), magnitude, largest);
  }
  return largest_magnitude(x + i, n - i, hn::GetLane(hn::MaxOfLanes(d, largest)));
}

void quantize_symmetric_target(const float* x, std::int64_t n, float scale, std::int8_t* q) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::int32_t, decltype(d)> d32;
  const hn::Rebind<std::int8_t, decltype(d)> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto limit = hn::Set(d, 127.0F);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto quotient = hn::Div(hn::LoadU(d, x + i), hn::Set(d, scale));
    // Limited before rounding, so that everything is in the range of conversions; a NaN becomes the lower limit.
    const auto below = hn::IfThenElse(hn::Lt(quotient, limit), quotient,
                                      hn::IfThenElse(hn::Ge(quotient, limit), limit, hn::Neg(limit)));
    const auto value = hn::IfThenElse(hn::Gt(below, hn::Neg(limit)), below, hn::Neg(limit));
    // The fraction that truncation leaves is exact; half and more goes away from zero.
    const auto whole = hn::Trunc(value);
    const auto away = hn::Ge(hn::Abs(hn::Sub(value, whole)), hn::Set(d, 0.5F));
    const auto rounded = hn::Add(whole, hn::IfThenElseZero(away, hn::CopySign(hn::Set(d, 1.0F), value)));
    hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(d32, rounded)), d8, q + i);
  }
  quantize_symmetric(x + i, n - i, scale, q + i);
}

}  // namespace
}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::gemm {

HWY_EXPORT(multiply_int8);
HWY_EXPORT(multiply_int16);
HWY_EXPORT(multiply_hybrid);
HWY_EXPORT(multiply_affine_u8);
HWY_EXPORT(multiply_affine_i32);
HWY_EXPORT(multiply_affine_f32);
HWY_EXPORT(widen_i8);
HWY_EXPORT(widen_u8);
HWY_EXPORT(largest_magnitude_target);
HWY_EXPORT(quantize_symmetric_target);

void multiply(const LeftSourceI16& a, const Workspace& w, const RightPanelsI8& b, const Int8Result& y) {
  HWY_DYNAMIC_DISPATCH(multiply_int8)(a, w, b, y);
}

void multiply(const LeftSourceI16& a, const Workspace& w, const RightPanelsI8& b, const Int16Result& y) {
  HWY_DYNAMIC_DISPATCH(multiply_int16)(a, w, b, y);
}

void multiply(const LeftSourceI16& a, const Workspace& w, const RightPanelsI8& b, const HybridResult& y) {
  HWY_DYNAMIC_DISPATCH(multiply_hybrid)(a, w, b, y);
}

void multiply(const LeftSourceI16& a, const Workspace& w, const RightPanelsI8& b, const AffineResult<std::uint8_t>& y) {
  HWY_DYNAMIC_DISPATCH(multiply_affine_u8)(a, w, b, y);
}

void multiply(const LeftSourceI16& a, const Workspace& w, const RightPanelsI8& b, const AffineResult<std::int32_t>& y) {
  HWY_DYNAMIC_DISPATCH(multiply_affine_i32)(a, w, b, y);
}

void multiply(const LeftSourceI16& a, const Workspace& w, const RightPanelsI8& b, const AffineResult<float>& y) {
  HWY_DYNAMIC_DISPATCH(multiply_affine_f32)(a, w, b, y);
}

void widen(const std::int8_t* from, std::int64_t n, std::int32_t zero_point, std::int16_t* to) {
  HWY_DYNAMIC_DISPATCH(widen_i8)(from, n, zero_point, to);
}

void widen(const std::uint8_t* from, std::int64_t n, std::int32_t zero_point, std::int16_t* to) {
  HWY_DYNAMIC_DISPATCH(widen_u8)(from, n, zero_point, to);
}

float largest_magnitude_simd(const float* x, std::int64_t n, float previous) {
  return HWY_DYNAMIC_DISPATCH(largest_magnitude_target)(x, n, previous);
}

void quantize_symmetric_simd(const float* x, std::int64_t n, float scale, std::int8_t* q) {
  HWY_DYNAMIC_DISPATCH(quantize_symmetric_target)(x, n, scale, q);
}

}  // namespace bantam::ops::gemm
#endif
