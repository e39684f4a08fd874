// The int8 matrix product of gemm_i8.h: pieces of the left matrix are fetched, the sums of a tile of rows and columns
// are accumulated in registers (gemm_i8_tiles-inl.h) and leave through a small buffer to the stage that scales them.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "ops/nn/gemm/gemm_i8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/gemm/gemm_i8_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/activate_rows_simd-inl.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/byte_rows_avx2-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/nn/gemm/gemm_i8_tiles-inl.h"
#include "ops/nn/gemm/saturating_pairs-inl.h"
#include "ops/nn/gemm/store_neon-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {
namespace {

using ops::HWY_NAMESPACE::activate_rows;
using ops::HWY_NAMESPACE::AffineVector;
using ops::HWY_NAMESPACE::demote_to_bytes;
using ops::HWY_NAMESPACE::load_channels;
using ops::HWY_NAMESPACE::load_zero_points;
using ops::HWY_NAMESPACE::quantize_activated;
using ops::HWY_NAMESPACE::RequantizeVector;
using ops::HWY_NAMESPACE::store_lanes;
/// The same of more products than int32 holds.
struct WideSums {
  std::int64_t at[kRows * kColumns];
};

/// Quads of products of int16 and int8 that cannot overflow int32: 508 products of at most 2^22.
constexpr std::int64_t kSafeQuads = 127;

template <typename Result>
bool subtracts_row_sums(const Result& /*y*/) {
  return false;
}
template <typename Y>
bool subtracts_row_sums(const AffineResult<Y>& y) {
  return !y.zero_points.are_zero();
}

/// Stores scale(sums) of `rows` rows and `lanes` columns from column c of a tile on as bytes, with the bits of `flip`
/// inverted; rows of sums are kStride apart. Arguments are values: nobody else's, so that storing bytes does not change
/// them.
template <std::int64_t kStride, typename Scale>
HWY_INLINE void store_bytes(const Scale scale, const std::int32_t* sums, std::int64_t rows, std::int64_t lanes,
                            std::uint8_t flip, std::uint8_t* to, std::int64_t row_stride) {
  const hn::Rebind<std::uint8_t, D32> d8;
  const auto flips = hn::Set(d8, flip);
  const auto bytes = [&](std::int64_t r) HWY_ATTR {
    return hn::Xor(hn::BitCast(d8, demote_to_bytes(kD32, scale(hn::LoadU(kD32, sums + r * kStride)))), flips);
  };
  if (lanes >= kLanes) {
    for (std::int64_t r = 0; r < rows; ++r) hn::StoreU(bytes(r), d8, to + r * row_stride);
  } else {
    for (std::int64_t r = 0; r < rows; ++r) store_lanes(d8, bytes(r), lanes, to + r * row_stride);
  }
}

/// Scales the sums of `rows` rows and columns [first, first + columns), and stores them at row m on. `row_sums`: of the
/// left matrix, from row m on; not used by most.
void finish_tile(const Int8Result& y, const Sums& sums, std::int64_t m, std::int64_t rows, std::int64_t first,
                 std::int64_t columns, const std::int32_t* /*row_sums*/) {
#if HWY_ARCH_ARM_A64
  if (columns == kColumns) {
    auto* to = reinterpret_cast<std::uint8_t*>(y.data + m * y.row_stride + first);
    return store_panel<RequantizeVector<D32>>(y.requantize, first, sums.at, rows, 0, to, y.row_stride);
  }
#endif
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, columns - c);
    store_bytes<kColumns>(RequantizeVector<D32>(kD32, y.requantize, first + c, lanes), sums.at + c, rows, lanes, 0,
                          reinterpret_cast<std::uint8_t*>(y.data + m * y.row_stride + first + c), y.row_stride);
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

/// Takes the products of the columns' zero points and the rows' sums off.
template <typename Y>
void subtract_row_sums(const AffineResult<Y>& y, std::int64_t rows, std::int64_t first, std::int64_t columns,
                       const std::int32_t* row_sums, Sums& sums) {
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, columns - c);
    const auto zeros = load_zero_points(kD32, y.zero_points, first + c, lanes);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int32_t* at = sums.at + r * kColumns + c;
      hn::StoreU(hn::Sub(hn::LoadU(kD32, at), hn::Mul(zeros, hn::Set(kD32, row_sums[r]))), kD32, at);
    }
  }
}

/// Results of an activation, quantised.
void finish_activated(const AffineResult<std::uint8_t>& y, const Sums& sums, std::int64_t m, std::int64_t rows,
                      std::int64_t first, std::int64_t columns) {
  HWY_ALIGN std::int32_t numbers[kByteRows * kLanes];
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, columns - c);
    const AffineVector<D32> scale(kD32, y.scaler, first + c, lanes);
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto real = scale.real(hn::LoadU(kD32, sums.at + r * kColumns + c));
      hn::Store(hn::BitCast(kD32, real), kD32, numbers + r * kLanes);
    }
    quantize_activated(y.scaler, numbers, rows * kLanes);
    store_bytes<kLanes>([](hn::Vec<D32> number) HWY_ATTR { return number; }, numbers, rows, lanes, y.scaler.flip,
                        y.data + m * y.row_stride + first + c, y.row_stride);
  }
}

template <typename Y>
void finish_tile(const AffineResult<Y>& y, Sums& sums, std::int64_t m, std::int64_t rows, std::int64_t first,
                 std::int64_t columns, const std::int32_t* row_sums) {
  if (subtracts_row_sums(y)) subtract_row_sums(y, rows, first, columns, row_sums, sums);
  if constexpr (std::is_same_v<Y, std::uint8_t>) {
    if (y.scaler.has_activation()) return finish_activated(y, sums, m, rows, first, columns);
  }
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, columns - c);
    const AffineVector<D32> scale(kD32, y.scaler, first + c, lanes);
    Y* to = y.data + m * y.row_stride + first + c;
    if constexpr (std::is_same_v<Y, std::uint8_t>) {
      store_bytes<kColumns>(scale, sums.at + c, rows, lanes, y.scaler.flip, to, y.row_stride);
    } else {
      for (std::int64_t r = 0; r < rows; ++r)
        scale.store(hn::LoadU(kD32, sums.at + r * kColumns + c), lanes, to + r * y.row_stride);
    }
  }
  if constexpr (std::is_same_v<Y, float>)
    activate_rows(y.scaler.activation, y.data + m * y.row_stride + first, rows, y.row_stride, columns);
}

/// finish_tile for columns [first, first + columns).
template <typename Result>
class TileEnd {
 public:
  TileEnd(const Result& y, std::int64_t first, std::int64_t columns) : y_(y), first_(first), columns_(columns) {}

  template <typename TileSums>
  HWY_INLINE void operator()(TileSums& sums, std::int64_t m, std::int64_t rows, const std::int32_t* row_sums) const {
    finish_tile(y_, sums, m, rows, first_, columns_, row_sums);
  }

 private:
  const Result& y_;
  std::int64_t first_;
  std::int64_t columns_;
};

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
/// The same of bytes. Whole panels are stored two rows at a time by what is made once for many rows. Scale: the last
/// stage of a vector of channels, made of a Scaler.
template <typename Result, class Scale>
class PanelEnd {
 public:
  template <class Scaler>
  HWY_INLINE PanelEnd(const Result& y, const Scaler& scaler, std::uint8_t flip, std::int64_t first,
                      std::int64_t columns)
      : plain_(y, first, columns),
        is_whole_(columns == kPanel),
        y_(reinterpret_cast<std::uint8_t*>(y.data) + first),
        row_stride_(y.row_stride),
        low_(kD32, scaler, first, std::min<std::int64_t>(columns, kLanes)),
        high_(kD32, scaler, first + kLanes, std::max<std::int64_t>(columns - kLanes, 0)),
        bytes_(scaler.zero_point, scaler.minimum, scaler.maximum, flip) {}

  /// `has_more`: scaling is not all there is to do.
  HWY_INLINE void finish(bool has_more, Sums& sums, std::int64_t m, std::int64_t rows,
                         const std::int32_t* row_sums) const {
    if (has_more || !is_whole_) return plain_(sums, m, rows, row_sums);
    const std::int32_t* from = sums.at;
    std::uint8_t* y = y_ + m * row_stride_;
    for (; rows >= 2; rows -= 2, from += 2 * kPanel, y += 2 * row_stride_)
      store_rows(from, from + kPanel, y, y + row_stride_);
    if (rows > 0) store_rows(from, from, y, y);
  }

 private:
  HWY_INLINE void store_rows(const std::int32_t* a, const std::int32_t* b, std::uint8_t* to_a,
                             std::uint8_t* to_b) const {
    bytes_.store(low_.rounded(hn::Load(kD32, a)), high_.rounded(hn::Load(kD32, a + kLanes)),
                 low_.rounded(hn::Load(kD32, b)), high_.rounded(hn::Load(kD32, b + kLanes)), to_a, to_b);
  }

  TileEnd<Result> plain_;
  bool is_whole_;
  std::uint8_t* y_;
  std::int64_t row_stride_;
  Scale low_;
  Scale high_;
  ops::HWY_NAMESPACE::ByteRows bytes_;
};

class Int8End : public PanelEnd<Int8Result, RequantizeVector<D32>> {
 public:
  HWY_INLINE Int8End(const Int8Result& y, std::int64_t first, std::int64_t columns)
      : PanelEnd(y, y.requantize, 0, first, columns) {}
  HWY_INLINE void operator()(Sums& sums, std::int64_t m, std::int64_t rows, const std::int32_t* row_sums) const {
    finish(false, sums, m, rows, row_sums);
  }
};

class AffineEnd : public PanelEnd<AffineResult<std::uint8_t>, AffineVector<D32>> {
 public:
  HWY_INLINE AffineEnd(const AffineResult<std::uint8_t>& y, std::int64_t first, std::int64_t columns)
      : PanelEnd(y, y.scaler, y.scaler.flip, first, columns),
        has_more_(subtracts_row_sums(y) || y.scaler.has_activation()) {}
  HWY_INLINE void operator()(Sums& sums, std::int64_t m, std::int64_t rows, const std::int32_t* row_sums) const {
    finish(has_more_, sums, m, rows, row_sums);
  }

 private:
  bool has_more_;
};

template <typename Result>
using TileEndOf = std::conditional_t<
    std::is_same_v<Result, Int8Result>, Int8End,
    std::conditional_t<std::is_same_v<Result, AffineResult<std::uint8_t>>, AffineEnd, TileEnd<Result>>>;
#else
template <typename Result>
using TileEndOf = TileEnd<Result>;
#endif

/// A piece of the left matrix: some rows, of which quads [first, first + quads).
struct Piece {
  const std::uint8_t* bytes = nullptr;    ///< not null: bytes, else
  const std::int16_t* numbers = nullptr;  ///< ordered by order_quads
  std::int64_t stride = 0;                ///< from one row to the next, in elements
  std::int64_t rows = 0;
  std::int64_t first = 0;
  std::int64_t quads = 0;
  std::uint8_t flip = 0;            ///< bits of bytes that are inverted before they count
  const PairRows* pairs = nullptr;  ///< not null: the bytes are rows [row, row + rows) of these
  std::int64_t row = 0;

  Piece some_rows(std::int64_t m, std::int64_t count) const {
    Piece result = *this;
    result.row += m;
    if (bytes != nullptr) result.bytes += m * stride;
    if (numbers != nullptr) result.numbers += m * stride;
    result.rows = count;
    return result;
  }
};

void widen_bytes(const std::uint8_t* from, std::int64_t n, ByteForm form, std::int16_t* to) {
  const hn::ScalableTag<std::int16_t> d16;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8;
  const auto zero = hn::Set(d16, static_cast<std::int16_t>(form.zero));
  const auto flip = hn::Set(d8, form.flip);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d16));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Sub(hn::PromoteTo(d16, hn::Xor(hn::LoadU(d8, from + i), flip)), zero), d16, to + i);
  for (; i < n; ++i) to[i] = static_cast<std::int16_t>((from[i] ^ form.flip) - form.zero);
}

/// The same as `widen_bytes` with the numbers of each quad ordered as by order_quads, and zeros up to a whole quad.
void widen_quads(const std::uint8_t* from, std::int64_t n, ByteForm form, std::int16_t* to) {
  const hn::ScalableTag<std::int16_t> d16;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8;
  alignas(16) static constexpr std::uint8_t kOrder[16] = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
  const auto order = hn::LoadDup128(d8, kOrder);
  const auto zero = hn::Set(d16, static_cast<std::int16_t>(form.zero));
  const auto flip = hn::Set(d8, form.flip);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d16));
  std::int64_t i = 0;
  if (lanes % 4 == 0) {
    for (; i + lanes <= n; i += lanes) {
      const auto bytes = hn::TableLookupBytes(hn::Xor(hn::LoadU(d8, from + i), flip), order);
      hn::StoreU(hn::Sub(hn::PromoteTo(d16, bytes), zero), d16, to + i);
    }
  }
  for (; i < n; i += 4) {
    std::int16_t quad[4] = {};
    widen_bytes(from + i, std::min<std::int64_t>(n - i, 4), form, quad);
    std::swap(quad[1], quad[2]);
    std::memcpy(to + i, quad, sizeof quad);
  }
}

/// to[i] = from[i] ^ flip. `to` may be `from`, but not overlap it otherwise.
void flip_bytes(const std::uint8_t* from, std::int64_t n, std::uint8_t flip, std::uint8_t* to) {
  const hn::CappedTag<std::uint8_t, 64> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto flips = hn::Set(d, flip);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Xor(hn::LoadU(d, from + i), flips), d, to + i);
  const hn::CappedTag<std::uint8_t, 16> part;
  const auto part_lanes = static_cast<std::int64_t>(hn::Lanes(part));
  for (; i + part_lanes <= n; i += part_lanes)
    hn::StoreU(hn::Xor(hn::LoadU(part, from + i), hn::Set(part, flip)), part, to + i);
  for (; i < n; ++i) to[i] = static_cast<std::uint8_t>(from[i] ^ flip);
}

/// The left matrix as pieces, which are put into the workspace where they cannot be used as they lie.
class Left {
 public:
  Left(const LeftSource& a, const Workspace& workspace, bool has_row_sums)
      : a_(a),
        workspace_(workspace),
        may_have_pairs_(multiplies_pairs() && a.gather_numbers == nullptr && !has_row_sums) {
    if (kInvertsBits && has_bytes()) std::swap(flip_, a_.flip);
  }

  /// Are pieces bytes?
  bool has_bytes() const { return multiplies_bytes() && a_.gather_numbers == nullptr; }

  /// Rows in full are used where they lie.
  bool stays() const { return has_bytes() && a_.data != nullptr && a_.flip == 0 && a_.k % 4 == 0 && !a_.overwritten; }

  /// How many numbers the workspace holds.
  std::int64_t capacity() const { return has_bytes() ? 2 * workspace_.count : workspace_.count; }

  /// The most rows of a tile.
  std::int64_t tile_rows() const { return has_bytes() ? kByteRows : kRows; }

  /// The zero point that products of bytes leave to be taken off.
  std::int32_t zero() const {
    if (has_bytes()) return a_.zero - kSubtracted;
    return may_have_pairs_ ? a_.zero - (counts_as_signed(a_.zero) ? 128 : 0) : 0;
  }

  /// Numbers [first, first + count) of rows [row, row + rows), valid until the next call.
  Piece fetch(std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count) const {
    Piece piece{.rows = rows, .first = first / 4, .quads = quad_count(count), .flip = flip_};
    if (stays()) {
      piece.bytes = a_.data + row * a_.row_stride + first;
      piece.stride = a_.row_stride;
      return piece;
    }
    piece.stride = row_numbers(count);
    if (has_bytes()) {
      auto* to = reinterpret_cast<std::uint8_t*>(workspace_.numbers);
      fetch_bytes(row, rows, first, count, a_.flip, to);
      piece.bytes = to;
    } else {
      piece.numbers = fetch_numbers(row, rows, first, count);
    }
    return piece;
  }

  /// All numbers of rows [row, row + rows); as bytes for products in pairs where these are exact, with `pairs`.
  Piece fetch_rows(std::int64_t row, std::int64_t rows, PairRows& pairs) {
    if (!may_have_pairs_) return fetch(row, rows, 0, a_.k);
    Piece piece{.rows = rows, .quads = quad_count(a_.k)};
    piece.stride = row_numbers(a_.k);
    const bool is_signed = counts_as_signed(a_.zero);
    const std::uint8_t more_flip = is_signed ? 0x80 : 0;
    std::uint8_t* bytes = upper_half(rows * piece.stride);
    fetch_bytes(row, rows, 0, a_.k, a_.flip ^ more_flip, bytes);
    auto* large = reinterpret_cast<LargeQuad*>(workspace_.numbers);
    if (prepare_pairs(bytes, rows, piece.quads, is_signed, large, pairs)) {
      piece.bytes = bytes;
      piece.pairs = &pairs;
    } else {
      may_have_pairs_ = false;
      widen_quads(bytes, rows * piece.stride, {more_flip, a_.zero}, workspace_.numbers);
      piece.numbers = workspace_.numbers;
    }
    return piece;
  }

 private:
  /// Where bytes lie that become so many numbers: widening from front to back catches up with them only at the end.
  std::uint8_t* upper_half(std::int64_t numbers) const {
    return reinterpret_cast<std::uint8_t*>(workspace_.numbers) + numbers;
  }

  /// With the bits of `flip` inverted.
  void fetch_bytes(std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count, std::uint8_t flip,
                   std::uint8_t* to) const {
    const std::int64_t stride = row_numbers(count);
    if (a_.data == nullptr) {
      a_.gather_bytes(a_.context, row, rows, first, count, stride, to);
      fill_up(rows, count, static_cast<std::uint8_t>(a_.zero ^ a_.flip), to);
      if (flip != 0) flip_bytes(to, rows * stride, flip, to);
      return;
    }
    const std::uint8_t* from = a_.data + row * a_.row_stride + first;
    if (a_.row_stride == stride && stride == count) {
      flip_bytes(from, rows * stride, flip, to);
    } else {
      for (std::int64_t m = 0; m < rows; ++m) flip_bytes(from + m * a_.row_stride, count, flip, to + m * stride);
    }
    fill_up(rows, count, static_cast<std::uint8_t>(a_.zero ^ a_.flip ^ flip), to);
  }

  /// Rows of `count` bytes up to whole quads with what becomes zero: nothing must come of it in sums of rows.
  static void fill_up(std::int64_t rows, std::int64_t count, std::uint8_t zero, std::uint8_t* to) {
    const std::int64_t stride = row_numbers(count);
    if (stride == count) return;
    for (std::int64_t m = 0; m < rows; ++m, to += stride)
      for (std::int64_t i = count; i < stride; ++i) to[i] = zero;
  }

  const std::int16_t* fetch_numbers(std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count) const {
    std::int16_t* to = workspace_.numbers;
    const std::int64_t stride = row_numbers(count);
    const ByteForm form{a_.flip, a_.zero};
    if (a_.gather_numbers != nullptr) {
      a_.gather_numbers(a_.context, row, rows, first, count, stride, to);
      for (std::int64_t m = 0; m < rows; ++m)
        std::fill(to + m * stride + count, to + (m + 1) * stride, std::int16_t{0});
      order_quads(to, rows * stride);
    } else if (a_.data == nullptr) {
      std::uint8_t* bytes = upper_half(rows * stride);
      fetch_bytes(row, rows, first, count, 0, bytes);
      widen_quads(bytes, rows * stride, form, to);
    } else if (const std::uint8_t* from = a_.data + row * a_.row_stride + first;
               a_.row_stride == stride && stride == count) {
      widen_quads(from, rows * stride, form, to);
    } else {
      for (std::int64_t m = 0; m < rows; ++m) widen_quads(from + m * a_.row_stride, count, form, to + m * stride);
    }
    return to;
  }

  LeftSource a_;
  const Workspace& workspace_;
  std::uint8_t flip_ = 0;  ///< left to sum_tile
  bool may_have_pairs_;
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

/// The columns of a tile: `columns` of them, in panels from `panel` on, each of `stride` bytes.
struct TileColumns {
  const std::int8_t* panel = nullptr;
  std::int64_t stride = 0;
  std::int64_t columns = 0;
  /// What sums of bytes start at: the zero point of the left matrix taken off.
  HWY_ALIGN std::int32_t start[kColumns] = {};
  const std::int8_t* ahead = nullptr;  ///< the next tile's panels, of which a quad of rows fetches `ahead_step` bytes
  std::int64_t ahead_step = 0;

  /// For `tiles` tiles of rows; `zero`: what is to be taken off bytes.
  TileColumns(const RightPanelsI8& b, std::int64_t k, std::int64_t first, std::int32_t zero, std::int64_t tiles)
      : panel(b.data + first / kPanel * panel_bytes(k)),
        stride(panel_bytes(k)),
        columns(std::min({kColumns, b.n - first, b.last * kPanel - first})) {
    if (first + kColumns < std::min(b.n, b.last * kPanel)) {
      ahead = panel + kColumns / kPanel * stride;
      ahead_step = (4 * kColumns + tiles - 1) / tiles;
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

/// Sums of the products of a piece, or of `quads` of its quads from the `done`-th on. Columns beyond those that there
/// are stay undefined.
void sum_piece(const Piece& a, std::int64_t done, std::int64_t quads, const TileColumns& b, Sums& sums) {
  const Span span{quads, a.stride, a.flip, b.stride, b.ahead + done * b.ahead_step, b.ahead_step};
  const std::int8_t* panel = b.panel + (a.first + done) * 4 * kPanel;
  if (a.bytes == nullptr) {
    sum_tile(a.numbers + 4 * done, a.rows, span, panel, b.columns, sums);
  } else if (a.pairs != nullptr) {
    sum_pairs(a.bytes, *a.pairs, a.row, a.rows, span, panel, b.columns, b.start, sums);
  } else {
    alignas(64) static constexpr std::int32_t kZeros[kColumns] = {};
    sum_tile(a.bytes + 4 * done, a.rows, span, panel, b.columns, a.first + done == 0 ? b.start : kZeros, sums);
  }
}

/// Adds the products of a piece. Columns beyond those that there are stay undefined.
template <typename TileSums>
HWY_INLINE void add_products(const Piece& a, const TileColumns& b, TileSums& sums) {
  constexpr std::int64_t kMost =
      std::is_same_v<TileSums, WideSums> ? kSafeQuads : std::numeric_limits<std::int64_t>::max();
  for (std::int64_t done = 0; done < a.quads; done += std::min(kMost, a.quads - done)) {
    Sums part;
    if (b.columns < kColumns) clear(part, a.rows);
    sum_piece(a, done, std::min(kMost, a.quads - done), b, part);
    add(sums, part, a.rows);
  }
}

template <typename TileSums>
HWY_INLINE void sum_products(const Piece& a, const TileColumns& b, TileSums& sums) {
  if constexpr (std::is_same_v<TileSums, Sums>) {
    sum_piece(a, 0, a.quads, b, sums);
  } else {
    clear(sums, a.rows);
    add_products(a, b, sums);
  }
}

/// sums[m] += the sum of the first `count` numbers of row m, each less `zero` if they are bytes, wrapping.
void add_rows(const Piece& a, std::int64_t count, std::int32_t zero, std::int32_t* sums) {
  for (std::int64_t m = 0; m < a.rows; ++m) {
    auto sum = static_cast<std::uint32_t>(sums[m]);
    if (a.bytes != nullptr) {
      for (std::int64_t i = 0; i < count; ++i) sum += static_cast<std::uint8_t>(a.bytes[m * a.stride + i] ^ a.flip);
      sum -= static_cast<std::uint32_t>(count) * static_cast<std::uint32_t>(zero);
    } else {
      for (std::int64_t i = 0; i < 4 * a.quads; ++i)
        sum += static_cast<std::uint32_t>(std::int32_t{a.numbers[m * a.stride + i]});
    }
    sums[m] = static_cast<std::int32_t>(sum);
  }
}

/// Calls f(first column) for the tiles of b.
template <typename F>
HWY_INLINE void for_each_tile(const RightPanelsI8& b, F f) {
  for (std::int64_t n = b.first * kPanel; n < std::min(b.last * kPanel, b.n); n += kColumns) f(n);
}

/// Rows are fetched in full, `block` at a time.
template <typename TileSums, typename Result>
HWY_INLINE void multiply_rows(const LeftSource& a, Left& left, std::int64_t block, const RightPanelsI8& b,
                              const Result& y) {
  TileSums sums;
  std::int32_t row_sums[kMaxBlockRows];
  PairRows pairs;
  for (std::int64_t start = 0; start < a.rows; start += block) {
    const std::int64_t count = std::min(block, a.rows - start);
    const Piece piece = left.fetch_rows(start, count, pairs);
    if (subtracts_row_sums(y)) {
      std::fill_n(row_sums, count, 0);
      add_rows(piece, a.k, a.zero, row_sums);
    }
    const std::int64_t tile = even_rows(count, left.tile_rows());
    for_each_tile(b, [&](std::int64_t n) HWY_ATTR {
      TileColumns columns(b, a.k, n, left.zero(), (count + tile - 1) / tile);
      const TileEndOf<Result> end(y, n, columns.columns);
      for (std::int64_t m = 0; m < count; m += tile) {
        const std::int64_t rows = std::min(tile, count - m);
        sum_products(piece.some_rows(m, rows), columns, sums);
        columns.ahead += columns.ahead_step * piece.quads;
        end(sums, start + m, rows, row_sums + m);
      }
    });
  }
}

/// One tile of rows after the other, of which `part` numbers are fetched at a time, once per tile of columns.
template <typename TileSums, typename Result>
HWY_INLINE void multiply_parts(const LeftSource& a, const Left& left, std::int64_t part, const RightPanelsI8& b,
                               const Result& y) {
  TileSums sums;
  const std::int64_t tile = even_rows(a.rows, left.tile_rows());
  for (std::int64_t m = 0; m < a.rows; m += tile) {
    const std::int64_t rows = std::min(tile, a.rows - m);
    for_each_tile(b, [&](std::int64_t n) HWY_ATTR {
      const TileColumns columns(b, a.k, n, left.zero(), 1);
      std::int32_t row_sums[kByteRows] = {};
      if (a.k == 0) clear(sums, rows);
      for (std::int64_t first = 0; first < a.k; first += part) {
        const std::int64_t count = std::min(part, a.k - first);
        const Piece piece = left.fetch(m, rows, first, count);
        if (first == 0) {
          sum_products(piece, columns, sums);
        } else {
          add_products(piece, columns, sums);
        }
        if (subtracts_row_sums(y)) add_rows(piece, count, a.zero, row_sums);
      }
      finish_tile(y, sums, m, rows, n, columns.columns, row_sums);
    });
  }
}

template <typename TileSums, typename Result>
HWY_INLINE void multiply_all(const LeftSource& a, const Workspace& workspace, const RightPanelsI8& b, const Result& y) {
  if (a.rows == 0) return;
  Left left(a, workspace, subtracts_row_sums(y));
  const std::int64_t tile = std::min(left.tile_rows(), a.rows);
  const std::int64_t fit = left.stays() ? a.rows : left.capacity() / std::max<std::int64_t>(row_numbers(a.k), 1);
  // A tile of few rows costs less than sums that start and end again, and rows that are fetched for each tile of
  // columns.
  constexpr std::int64_t kFewRows = 4;
  if (fit >= std::min(tile, kFewRows)) {
    // All rows, full tiles, or tiles of about the same size.
    const std::int64_t whole = fit >= a.rows ? a.rows : fit >= tile ? fit / tile * tile : fit;
    const std::int64_t most = std::min(whole, kMaxBlockRows);
    multiply_rows<TileSums>(a, left, even_rows(a.rows, most), b, y);
  } else {
    multiply_parts<TileSums>(a, left, std::max<std::int64_t>(left.capacity() / tile / 4 * 4, 4), b, y);
  }
}

void multiply_int8(const LeftSource& a, const Workspace& w, const RightPanelsI8& b, const Int8Result& y) {
  multiply_all<Sums>(a, w, b, y);
}

void multiply_int16(const LeftSource& a, const Workspace& w, const RightPanelsI8& b, const Int16Result& y) {
  multiply_all<WideSums>(a, w, b, y);
}

void multiply_hybrid(const LeftSource& a, const Workspace& w, const RightPanelsI8& b, const HybridResult& y) {
  multiply_all<Sums>(a, w, b, y);
}

void multiply_affine_u8(const LeftSource& a, const Workspace& w, const RightPanelsI8& b,
                        const AffineResult<std::uint8_t>& y) {
  multiply_all<Sums>(a, w, b, y);
}

void multiply_affine_i32(const LeftSource& a, const Workspace& w, const RightPanelsI8& b,
                         const AffineResult<std::int32_t>& y) {
  multiply_all<Sums>(a, w, b, y);
}

void multiply_affine_f32(const LeftSource& a, const Workspace& w, const RightPanelsI8& b,
                         const AffineResult<float>& y) {
  multiply_all<Sums>(a, w, b, y);
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
HWY_EXPORT(widen_bytes);
HWY_EXPORT(largest_magnitude_target);
HWY_EXPORT(quantize_symmetric_target);

void multiply(const LeftSource& a, const Workspace& w, const RightPanelsI8& b, const Int8Result& y) {
  HWY_DYNAMIC_DISPATCH(multiply_int8)(a, w, b, y);
}

void multiply(const LeftSource& a, const Workspace& w, const RightPanelsI8& b, const Int16Result& y) {
  HWY_DYNAMIC_DISPATCH(multiply_int16)(a, w, b, y);
}

void multiply(const LeftSource& a, const Workspace& w, const RightPanelsI8& b, const HybridResult& y) {
  HWY_DYNAMIC_DISPATCH(multiply_hybrid)(a, w, b, y);
}

void multiply(const LeftSource& a, const Workspace& w, const RightPanelsI8& b, const AffineResult<std::uint8_t>& y) {
  HWY_DYNAMIC_DISPATCH(multiply_affine_u8)(a, w, b, y);
}

void multiply(const LeftSource& a, const Workspace& w, const RightPanelsI8& b, const AffineResult<std::int32_t>& y) {
  HWY_DYNAMIC_DISPATCH(multiply_affine_i32)(a, w, b, y);
}

void multiply(const LeftSource& a, const Workspace& w, const RightPanelsI8& b, const AffineResult<float>& y) {
  HWY_DYNAMIC_DISPATCH(multiply_affine_f32)(a, w, b, y);
}

void widen(const std::uint8_t* from, std::int64_t n, ByteForm form, std::int16_t* to) {
  HWY_DYNAMIC_DISPATCH(widen_bytes)(from, n, form, to);
}

float largest_magnitude_simd(const float* x, std::int64_t n, float previous) {
  return HWY_DYNAMIC_DISPATCH(largest_magnitude_target)(x, n, previous);
}

void quantize_symmetric_simd(const float* x, std::int64_t n, float scale, std::int8_t* q) {
  HWY_DYNAMIC_DISPATCH(quantize_symmetric_target)(x, n, scale, q);
}

}  // namespace bantam::ops::gemm
#endif
