// The int8 matrix product of gemm_i8.h: pieces of the left matrix are fetched, the sums of a tile of rows and columns
// are accumulated in registers (gemm_i8_tiles-inl.h), scaled and stored (gemm_i8_ends-inl.h).
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/gemm/panel_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/gemm/gemm_i8_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/nn/gemm/gemm_i8_ends-inl.h"
#include "ops/nn/gemm/gemm_i8_tiles-inl.h"
#include "ops/nn/gemm/saturating_pairs-inl.h"
#include "ops/nn/gemm/sums_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {
namespace {

/// Quads of products of int16 and int8 that cannot overflow int32: 508 products of at most 2^22.
constexpr std::int64_t kSafeQuads = 127;

constexpr bool kTakesLines = (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2) && HWY_ARCH_X86;

/// Rows of the tiles into which `rows` rows are cut, of at most `most`: whole ones and a last one where sums of whole
/// ones can be stored from registers (store_tiles), else about the same.
constexpr std::int64_t tile_rows_of(std::int64_t rows, std::int64_t most) {
#if (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2) && HWY_ARCH_X86
  return std::min(rows, most);
#else
  return even_rows(rows, most);
#endif
}

/// A piece of the left matrix: some rows, of which quads [first, first + quads).
struct Piece {
  const std::uint8_t* bytes = nullptr;    ///< not null: bytes, else
  const std::int16_t* numbers = nullptr;  ///< ordered by order_quads
  std::int64_t stride = 0;                ///< from one row to the next, in elements
  std::int64_t rows = 0;
  std::int64_t first = 0;
  std::int64_t quads = 0;
  std::uint8_t flip = 0;            ///< bits of bytes that are inverted before they count
  AmxTiles* tiles = nullptr;        ///< not null: these have the rows
  const PairRows* pairs = nullptr;  ///< not null: the bytes are rows [row, row + rows) of these
  std::int64_t row = 0;
  const Lines* lines = nullptr;  ///< not null: the bytes are rows of one of them

  Piece some_rows(std::int64_t m, std::int64_t count) const {
    Piece result = *this;
    result.row += m;
    if (bytes != nullptr) result.bytes += m * stride;
    if (numbers != nullptr) result.numbers += m * stride;
    result.rows = count;
    return result;
  }

  /// Of so many of its quads, and of panels that are `panel_stride` bytes apart.
  Span span(std::int64_t some_quads, std::int64_t panel_stride, const std::int8_t* ahead,
            std::int64_t ahead_step) const {
    Span result{some_quads, stride, flip, panel_stride, ahead, ahead_step};
    if (lines == nullptr) return result;
    result.quads = lines->segment / 4;
    result.segments = quads / result.quads;
    result.segment_stride = lines->segment_stride;
    return result;
  }
};

/// sums[m] += the sum of the first `count` numbers of row m, each less `zero` if they are bytes, wrapping.
void add_rows(const Piece& a, std::int64_t count, std::int32_t zero, std::int32_t* sums) {
  for (std::int64_t m = 0; m < a.rows; ++m) {
    const std::uint32_t sum = a.bytes != nullptr
                                  ? row_sum_u8(a.bytes + m * a.stride, count, a.flip) -
                                        static_cast<std::uint32_t>(count) * static_cast<std::uint32_t>(zero)
                                  : row_sum_i16(a.numbers + m * a.stride, 4 * a.quads);
    sums[m] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[m]) + sum);
  }
}

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
  // Short rows are quads.
  const hn::CappedTag<std::int16_t, 4> quad16;
  const hn::Rebind<std::uint8_t, decltype(quad16)> quad8;
  if (hn::Lanes(quad16) == 4) {
    const auto quad_order = hn::LoadU(quad8, kOrder);
    for (; i + 4 <= n; i += 4) {
      const auto bytes =
          hn::TableLookupBytes(hn::Xor(hn::LoadU(quad8, from + i), hn::Set(quad8, form.flip)), quad_order);
      const auto numbers = hn::PromoteTo(quad16, bytes);
      hn::StoreU(hn::Sub(numbers, hn::Set(quad16, static_cast<std::int16_t>(form.zero))), quad16, to + i);
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
  /// `panels`: that will be multiplied with it. `adds_rows`: are its rows summed, too? `in_tiles`: will its rows, bytes
  /// in full, be multiplied as matrices?
  Left(const LeftSource& a, const Workspace& workspace, std::int64_t panels, bool adds_rows, bool in_tiles)
      : a_(a),
        workspace_(workspace),
        panels_(panels),
        in_tiles_(in_tiles),
        may_have_pairs_(multiplies_pairs() && a.gather_numbers == nullptr && panels > 0 &&
                        quad_count(a.k) >= least_pair_quads(panels)),
        fills_up_(adds_rows || may_have_pairs_),
        fetched_flip_((kInvertsBits || in_tiles) && has_bytes() ? 0 : a.flip),
        flip_(a.flip ^ fetched_flip_) {}

  /// Are pieces bytes?
  bool has_bytes() const { return multiplies_bytes() && a_.gather_numbers == nullptr; }

  bool in_tiles() const { return in_tiles_; }

  /// Rows in full are used where they lie.
  bool stays() const {
    return has_bytes() && a_.data != nullptr && fetched_flip_ == 0 && a_.k % 4 == 0 && !a_.overwritten;
  }

  /// How many numbers the workspace holds.
  std::int64_t capacity() const { return has_bytes() ? 2 * workspace_.count : workspace_.count; }

  /// The most rows of a tile of so many columns.
  std::int64_t tile_rows(std::int64_t columns = kColumns) const {
    return has_bytes() ? byte_rows(static_cast<int>(columns / kLanes)) : kRows;
  }

  /// The zero point that products of bytes leave to be taken off.
  std::int32_t zero() const {
    if (in_tiles_) return a_.zero - (flip_ != 0 ? 128 : 0);
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
      fetch_bytes(row, rows, first, count, fetched_flip_, to);
      piece.bytes = to;
    } else {
      piece.numbers = fetch_numbers(row, rows, first, count);
    }
    return piece;
  }

  /// All numbers of rows [row, row + rows); as bytes for products in pairs where these are exact, with `pairs`.
  /// `row_sums`: null, or where the rows' sums go.
  Piece fetch_rows(std::int64_t row, std::int64_t rows, PairRows& pairs, std::int32_t* row_sums) {
    if (!may_have_pairs_) {
      const Piece piece = fetch(row, rows, 0, a_.k);
      if (row_sums != nullptr) add_rows(piece, a_.k, a_.zero, row_sums);
      return piece;
    }
    Piece piece{.rows = rows, .quads = quad_count(a_.k)};
    piece.stride = row_numbers(a_.k);
    const bool is_signed = counts_as_signed(a_.zero);
    const std::uint8_t more_flip = is_signed ? 0x80 : 0;
    std::uint8_t* bytes = upper_half(rows * piece.stride);
    fetch_bytes(row, rows, 0, a_.k, fetched_flip_ ^ more_flip, bytes);
    if (row_sums != nullptr) {
      Piece whole = piece;
      whole.bytes = bytes;
      whole.flip = more_flip;
      add_rows(whole, a_.k, a_.zero, row_sums);
    }
    auto* seconds = reinterpret_cast<SecondPart*>(workspace_.numbers);
    pairs.tile = tile_rows_of(rows, kByteRows);
    pairs.most = rows / pairs.tile * piece.quads / quads_per_second(panels_);
    if (prepare_pairs(bytes, rows, piece.quads, is_signed, seconds, pairs)) {
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
      fill_up(rows, count, static_cast<std::uint8_t>(a_.zero ^ fetched_flip_), to);
      if (flip != 0) flip_bytes(to, rows * stride, flip, to);
      return;
    }
    const std::uint8_t* from = a_.data + row * a_.row_stride + first;
    if (a_.row_stride == stride && stride == count) {
      flip_bytes(from, rows * stride, flip, to);
    } else {
      for (std::int64_t m = 0; m < rows; ++m) flip_bytes(from + m * a_.row_stride, count, flip, to + m * stride);
    }
    fill_up(rows, count, static_cast<std::uint8_t>(a_.zero ^ fetched_flip_ ^ flip), to);
  }

  /// Rows of `count` bytes up to whole quads with what becomes zero: nothing must come of it in sums of rows. Products
  /// are with zeros anyway.
  void fill_up(std::int64_t rows, std::int64_t count, std::uint8_t zero, std::uint8_t* to) const {
    const std::int64_t stride = row_numbers(count);
    if (stride == count || !fills_up_) return;
    // Whole quads are written: of a loop over bytes compilers make a call.
    std::uint8_t bytes[4];
    for (int i = 0; i < 4; ++i) bytes[i] = i < count % 4 ? 255 : 0;
    std::uint32_t kept;
    std::memcpy(&kept, bytes, sizeof kept);
    const std::uint32_t added = ~kept & 0x01010101U * zero;
    for (to += stride - 4; rows > 0; --rows, to += stride) {
      std::uint32_t quad;
      std::memcpy(&quad, to, sizeof quad);
      quad = (quad & kept) | added;
      std::memcpy(to, &quad, sizeof quad);
    }
  }

  const std::int16_t* fetch_numbers(std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count) const {
    std::int16_t* to = workspace_.numbers;
    const std::int64_t stride = row_numbers(count);
    const ByteForm form{fetched_flip_, a_.zero};
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

  const LeftSource& a_;  // a copy by vectors would wait for what has just been stored
  const Workspace& workspace_;
  std::int64_t panels_;
  bool in_tiles_;
  bool may_have_pairs_;
  bool fills_up_;              ///< do sums of rows take numbers behind these? Products are with zeros there
  std::uint8_t fetched_flip_;  ///< of the bits that are inverted when bytes are fetched
  std::uint8_t flip_;          ///< left to sum_tile, or with in_tiles_ inverted where bytes count as signed
};

void clear(Sums& sums, std::int64_t rows) { std::fill_n(sums.at, rows * kMostColumns, 0); }
void clear(WideSums& sums, std::int64_t rows) { std::fill_n(sums.at, rows * kMostColumns, std::int64_t{0}); }

void add(Sums& sums, const Sums& part, std::int64_t rows) {
  for (std::int64_t c = 0; c < rows * kMostColumns; c += kLanes)
    hn::StoreU(hn::Add(hn::LoadU(kD32, sums.at + c), hn::LoadU(kD32, part.at + c)), kD32, sums.at + c);
}
void add(WideSums& sums, const Sums& part, std::int64_t rows) {
  for (std::int64_t c = 0; c < rows * kMostColumns; ++c) sums.at[c] += part.at[c];
}

/// Sums of the products of a piece, or of `quads` of its quads from the `done`-th on. Columns beyond those that there
/// are stay undefined.
void sum_piece(const Piece& a, std::int64_t done, std::int64_t quads, const TileColumns& b, Sums& sums) {
  if (quads == 0) {
    for (std::int64_t r = 0; r < a.rows; ++r) std::copy_n(b.start, kMostColumns, sums.at + r * kMostColumns);
    return;
  }
  const Span span = a.span(quads, b.stride, b.ahead + done * b.ahead_step, b.ahead_step);
  const std::int8_t* panel = b.panel + (a.first + done) * 4 * kPanel;
  if (a.bytes == nullptr) {
    sum_tile(a.numbers + 4 * done, a.rows, span, panel, b.columns, sums);
  } else if (a.pairs != nullptr) {
    sum_pairs(a.bytes, *a.pairs, a.row, a.rows, span, panel, b.columns, b.start, sums);
  } else {
    alignas(64) static constexpr std::int32_t kZeros[kMostColumns] = {};
    sum_tile(a.bytes + 4 * done, a.rows, span, panel, b.columns, a.first + done == 0 ? b.start : kZeros, sums);
  }
}

#if (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2) && HWY_ARCH_X86
/// Calls run(products), the products of bytes that are fastest for these columns.
template <class Run>
HWY_INLINE void with_products(const TileColumns& b, Run run) {
#if HWY_TARGET == HWY_AVX3_DL
  if ((b.columns - 1) % kPanel < kPanel / 2) return run(HalfQuadProducts());
#endif
  static_cast<void>(b);
  run(QuadProducts());
}

/// `start`: of b, or that with what sums get in the end.
template <int kTileVectors, class End>
void store_tiles_of(const Piece& a, std::int64_t tiles, const TileColumns& b, const std::int32_t* start,
                    const End& end) {
  const Span span = a.span(a.quads, b.stride, b.ahead, b.ahead_step);
  const std::int8_t* panel = b.panel;
#if HWY_TARGET == HWY_AVX2
  if (a.bytes == nullptr) {
    if constexpr (kTileVectors == kVectors) {
      if (WidePanel::pays(tiles, a.quads))
        return sum_wide_tiles<kRows>(a.numbers, tiles, span, WidePanel(panel, a.quads), start, end);
    }
    return sum_tiles_of<kRows, kTileVectors>(a.numbers, tiles, span, panel, start, end);
  }
  if (a.pairs != nullptr) return sum_pair_tiles<kTileVectors>(a.bytes, *a.pairs, tiles, span, panel, start, end);
#endif
  with_products(b, [&](auto products) HWY_ATTR {
    sum_byte_tiles_of<decltype(products), byte_rows(kTileVectors), kTileVectors>(a.bytes, tiles, span, panel,
                                                                                 {.columns = start}, end);
  });
}

/// The same of fewer rows than a tile has.
template <int kTileVectors, class End>
void store_few_rows(const Piece& a, const TileColumns& b, const std::int32_t* start, const End& end) {
  with_products(b, [&](auto products) HWY_ATTR {
    unroll<byte_rows(kTileVectors) - 1>([&](auto i) HWY_ATTR {
      if (a.rows == i + 1)
        sum_byte_tiles_of<decltype(products), i + 1, kTileVectors>(
            a.bytes, 1, a.span(a.quads, b.stride, b.ahead, b.ahead_step), b.panel, {.columns = start}, end);
    });
  });
}
#endif

#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86
/// Computes and stores all rows of a piece that is ready for it, from row m of the result on.
template <class End>
void store_amx_tiles(const Piece& a, const TileColumns& b, const End& end, std::int64_t m,
                     const std::int32_t* row_sums) {
  AmxTiles& tiles = *a.tiles;
  tiles.set_panels({.data = b.panel, .stride = b.stride, .count = panel_count(b.columns), .start = b.start});
  Sums sums;
  for (std::int64_t group = 0; group < tiles.groups(); ++group) {
    const AmxTiles::Rows rows = tiles.sum(group, sums.at);
    end(sums, m + rows.first, rows.count, row_sums + rows.first);
  }
}
#endif

/// Computes and stores tiles of `tile` rows, from row m of the result on, where there is a short way for many: with
/// AVX2 and AVX-512 whole ones are stored from registers, and wide ones of fewer rows. How many rows that were.
template <class End>
std::int64_t store_tiles(const Piece& a, std::int64_t tile, TileColumns& b, const End& end, std::int64_t m,
                         const std::int32_t* row_sums) {
#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86
  if (a.tiles != nullptr) {
    store_amx_tiles(a, b, end, m, row_sums);
    return a.rows;
  }
#endif
#if (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2) && HWY_ARCH_X86
  if constexpr (requires { end.vectors(); }) {
    static_assert(kRows == kByteRows || HWY_TARGET != HWY_AVX2);
    const int vectors = end.vectors();
    if (a.quads == 0 || vectors == 0) return 0;
    const int tile_rows = byte_rows(vectors);
    const std::int64_t tiles = tile == tile_rows ? a.rows / tile_rows : 0;
    std::int64_t done = tiles * tile_rows;
    const bool stores_rest = kHasWideTiles && vectors == 4 && done < a.rows;
    if (tiles == 0 && !stores_rest) return 0;
    const std::int32_t* start = b.start;
    HWY_ALIGN std::int32_t start_with_bias[kMostColumns];
    if constexpr (requires { end.add_bias(start, start_with_bias); }) {
      end.add_bias(start, start_with_bias);
      start = start_with_bias;
    }
    const auto store_whole = [&](const auto& store) HWY_ATTR {
      if constexpr (kHasWideTiles) {
        if (vectors == 4) return store_tiles_of<4>(a, tiles, b, start, store);
        if (vectors == 3) return store_tiles_of<3>(a, tiles, b, start, store);
      }
      vectors == kVectors ? store_tiles_of<kVectors>(a, tiles, b, start, store)
                          : store_tiles_of<1>(a, tiles, b, start, store);
    };
    if (tiles > 0) end.with_tiles(m, row_sums, store_whole);
    b.ahead += tiles * b.ahead_step * a.quads;
    if constexpr (kHasWideTiles) {
      if (stores_rest) {
        end.with_tiles(m + done, row_sums + done, [&](const auto& store) HWY_ATTR {
          store_few_rows<4>(a.some_rows(done, a.rows - done), b, start, store);
        });
        b.ahead += b.ahead_step * a.quads;
        done = a.rows;
      }
    }
    return done;
  }
#elif HWY_ARCH_ARM_A64
  if (a.bytes == nullptr || a.quads == 0) return 0;
  Sums sums;
  const Span span{a.quads, a.stride, a.flip, b.stride};
  ArmTile some = arm_tile(a.bytes, tile, span, b.panel, b.columns, b.start, sums);
  const ByteProducts products = byte_products();
  some.sums_two = products == ByteProducts::kNone && two_products_fit(b.panel, a.quads);
  const auto sum = arm_sums(products);
  const std::int64_t most = kSumRows / tile * tile;
  for (std::int64_t row = 0, count = 0; row < a.rows; row += count) {
    count = std::min(most, a.rows - row);
    some.sums = sums.at;
    for (std::int64_t done = 0; done < count; done += tile, some.a += tile * a.stride, some.sums += tile * kPanel) {
      some.rows = std::min(tile, count - done);
      sum(some);
    }
    end(sums, m + row, count, row_sums + row);
  }
  return a.rows;
#endif
  static_cast<void>(a), static_cast<void>(tile), static_cast<void>(b), static_cast<void>(end), static_cast<void>(m);
  static_cast<void>(row_sums);
  return 0;
}

/// Adds the products of a piece. Columns beyond those that there are stay undefined.
template <typename TileSums>
HWY_INLINE void add_products(const Piece& a, const TileColumns& b, TileSums& sums) {
  constexpr std::int64_t kMost =
      std::is_same_v<TileSums, WideSums> ? kSafeQuads : std::numeric_limits<std::int64_t>::max();
  for (std::int64_t done = 0; done < a.quads; done += std::min(kMost, a.quads - done)) {
    Sums part;
    if (b.columns < kMostColumns) clear(part, a.rows);
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

/// How columns are cut for products of so many rows of bytes, or 0 where tiles may not be wide. Few rows should be left
/// over: those go through memory. And wide tiles have few rows, for each of which their weights are read again: that
/// must not be from beyond the second-level cache.
HWY_INLINE PanelTiles cut_columns(const RightPanelsI8& b, std::int64_t rows, std::int64_t k) {
  constexpr std::int64_t kWidth = kColumns / kPanel;
  constexpr std::int64_t kMostWeights = 512 * 1024;
  const std::int64_t panels = panel_count(std::min(b.last * kPanel, b.n)) - b.first;
  const bool wide = kHasWideTiles && panels >= 3 && rows > 0 && k * 4 * kPanel <= kMostWeights;
  if (!wide) return {panels, kWidth};
  return rows % byte_rows(3) < rows % byte_rows(4) ? PanelTiles::of_threes(panels, kWidth)
                                                   : PanelTiles::of_fours(panels, kWidth);
}

/// Calls f(first column, columns, of which the last may not be there) for the tiles of b.
template <typename F>
HWY_INLINE void for_each_tile(const RightPanelsI8& b, const PanelTiles& tiles, F f) {
  for (std::int64_t tile = 0; tile < tiles.count(); ++tile)
    f((b.first + tiles.first(tile)) * kPanel, std::max((tiles.first(tile + 1) - tiles.first(tile)) * kPanel, kColumns));
}

/// Rows are fetched in full, `block` at a time.
template <typename TileSums, typename Result>
HWY_INLINE void multiply_rows(const LeftSource& a, Left& left, std::int64_t block, const RightPanelsI8& b,
                              const Result& y) {
  TileSums sums;
  std::int32_t row_sums[kMaxBlockRows];
  PairRows pairs;
#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86
  AmxTiles tiles;
#endif
  for (std::int64_t start = 0; start < a.rows; start += block) {
    const std::int64_t count = std::min(block, a.rows - start);
    std::fill_n(row_sums, count, 0);
    Piece piece = left.fetch_rows(start, count, pairs, subtracts_row_sums(y) ? row_sums : nullptr);
#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86
    if (left.in_tiles()) {
      tiles.set_rows({piece.bytes, piece.stride, piece.flip != 0, count, piece.quads});
      piece.tiles = &tiles;
    }
#endif
    const PanelTiles cut = cut_columns(b, left.has_bytes() && !left.in_tiles() ? count : 0, a.k);
    for_each_tile(b, cut, [&](std::int64_t n, std::int64_t width) HWY_ATTR {
      const std::int64_t tile = tile_rows_of(count, left.tile_rows(width));
      TileColumns columns(b, a.k, n, width, left.zero(), (count + tile - 1) / tile);
      TileEndOf<Result> end(y, n, columns.columns);
      if constexpr (requires { end.begin(columns.start); }) end.begin(piece.bytes != nullptr ? columns.start : nullptr);
      std::int64_t m = 0;
      if constexpr (std::is_same_v<TileSums, Sums>) m = store_tiles(piece, tile, columns, end, start, row_sums);
      for (; m < count; m += tile) {
        const std::int64_t rows = std::min(tile, count - m);
        sum_products(piece.some_rows(m, rows), columns, sums);
        columns.ahead += columns.ahead_step * piece.quads;
        end(sums, start + m, rows, row_sums + m);
      }
    });
  }
}

/// Rows lie in lines, of which each is cut into tiles by itself.
template <typename Result>
HWY_INLINE void multiply_lines(const LeftSource& a, const RightPanelsI8& b, const Result& y) {
  Sums sums;
  constexpr std::int32_t kNoRowSums[kByteRows] = {};
  Piece line{.bytes = a.data, .stride = a.row_stride, .rows = a.lines.rows, .quads = a.k / 4, .lines = &a.lines};
  for_each_tile(b, cut_columns(b, line.rows, a.k), [&](std::int64_t n, std::int64_t width) HWY_ATTR {
    const std::int64_t tile = tile_rows_of(line.rows, byte_rows(static_cast<int>(width / kLanes)));
    const std::int64_t tiles = a.rows / line.rows * ((line.rows + tile - 1) / tile);
    TileColumns columns(b, a.k, n, width, a.zero - kSubtracted, tiles);
    TileEndOf<Result> end(y, n, columns.columns);
    if constexpr (requires { end.begin(columns.start); }) end.begin(columns.start);
    line.bytes = a.data;
    for (std::int64_t first = 0; first < a.rows; first += line.rows, line.bytes += a.lines.stride) {
      std::int64_t m = store_tiles(line, tile, columns, end, first, kNoRowSums);
      for (; m < line.rows; m += tile) {
        const std::int64_t rows = std::min(tile, line.rows - m);
        sum_piece(line.some_rows(m, rows), 0, line.quads, columns, sums);
        columns.ahead += columns.ahead_step * line.quads;
        end(sums, first + m, rows, kNoRowSums);
      }
    }
  });
}

/// One tile of rows after the other, of which `part` numbers are fetched at a time, once per tile of columns.
template <typename TileSums, typename Result>
HWY_INLINE void multiply_parts(const LeftSource& a, const Left& left, std::int64_t part, const RightPanelsI8& b,
                               const Result& y) {
  TileSums sums;
  const std::int64_t tile = even_rows(a.rows, left.tile_rows());
  for (std::int64_t m = 0; m < a.rows; m += tile) {
    const std::int64_t rows = std::min(tile, a.rows - m);
    for_each_tile(b, cut_columns(b, 0, a.k), [&](std::int64_t n, std::int64_t width) HWY_ATTR {
      const TileColumns columns(b, a.k, n, width, left.zero(), 1);
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

/// How many rows are fetched in full at once: all, full tiles, or a part of one; 0 where that does not pay.
std::int64_t rows_at_once(const LeftSource& a, const Left& left) {
  const std::int64_t tile = std::min(left.tile_rows(), a.rows);
  const std::int64_t fit = left.stays() ? a.rows : left.capacity() / std::max<std::int64_t>(row_numbers(a.k), 1);
  // A tile of few rows costs less than sums that start and end again, and rows that are fetched for each tile of
  // columns.
  constexpr std::int64_t kFewRows = 4;
  if (fit < std::min(tile, kFewRows)) return 0;
  const std::int64_t whole = fit >= a.rows ? a.rows : fit >= tile ? fit / tile * tile : fit;
  return block_rows(a.rows, std::min(whole, left.has_bytes() ? most_block_rows(a.k) : most_wide_rows(a.k)));
}

/// Fewer numbers of a row are not multiplied as matrices.
constexpr std::int64_t kLeastNumbers = 33;

/// Are rows bytes that are multiplied as matrices?
bool is_in_tiles(const LeftSource& a, const Workspace& workspace, std::int64_t panels, bool adds_rows) {
  // Sums of fewer go faster where they stay in registers; and the unit takes half a microsecond to wake.
  constexpr std::int64_t kLeastRows = 4;
  constexpr std::int64_t kLeastProducts = 1'000'000;
  return multiplies_matrices() && a.gather_numbers == nullptr && a.k >= kLeastNumbers && a.rows >= kLeastRows &&
         a.rows * a.k * panels * kPanel >= kLeastProducts &&
         rows_at_once(a, Left(a, workspace, panels, adds_rows, true)) > 0;
}

template <typename TileSums, typename Result>
HWY_INLINE void multiply_all(const LeftSource& a, const Workspace& workspace, const RightPanelsI8& b, const Result& y) {
  if (a.rows == 0) return;
  if constexpr (kTakesLines && std::is_same_v<TileSums, Sums>) {
    if (a.lines.rows != 0) return multiply_lines(a, b, y);
  }
  const std::int64_t panels = b.last - b.first;
  const bool adds_rows = subtracts_row_sums(y);
  Left left(a, workspace, panels, adds_rows, is_in_tiles(a, workspace, panels, adds_rows));
  if (const std::int64_t block = rows_at_once(a, left); block > 0) {
    multiply_rows<TileSums>(a, left, block, b, y);
  } else {
    const std::int64_t tile = std::min(left.tile_rows(), a.rows);
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

/// Cycles that it takes to copy a row: three for 32 numbers, 20 for what is found out about each window.
constexpr std::int64_t copy_cycles(std::int64_t k) { return 3 * k / 32 + 20; }

/// Is a copied row multiplied as a part of a matrix in less time than one that stays where it lies? For 64 numbers and
/// sixteen columns that saves some five cycles; then sums pass through memory, four in a cycle.
bool pays_as_matrix(std::int64_t k, std::int64_t n) {
  const std::int64_t columns = align_up(n, kPanel);
  return multiplies_matrices() && k >= kLeastNumbers && 5 * k * columns / 1024 >= copy_cycles(k) + columns / 4;
}

/// Lines end with a tile of few rows, for which their weights are loaded as for a whole one; rows that are copied cost
/// a store for each 16 bytes. Compared in cycles: half of those that products of the idle rows would take, 64 in each,
/// with those of the copies. Products with numbers that mean nothing pay where they take less than a sixth of a cycle
/// for each number that is copied. On Arm, whose tiles load 16 bytes of a row at once, copies cost a twentieth of all
/// instructions, and segments that are no multiples of 16 bytes more than that.
bool takes_lines_target(std::int64_t rows, std::int64_t k, std::int64_t n, std::int64_t more) {
  if (!kTakesLines || !multiplies_bytes() || pays_as_matrix(k, n)) return false;
  const PanelTiles cut = cut_columns({.n = n, .first = 0, .last = panel_count(n)}, rows, k);
  const auto vectors = std::max(cut.first(1) * kPanel, kColumns) / kLanes;
  const std::int64_t idle_rows = align_up(rows, byte_rows(static_cast<int>(vectors))) - rows;
  return idle_rows * n * k / 128 < rows * copy_cycles(k) && 3 * n * more < 32 * k;
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
HWY_EXPORT(takes_lines_target);
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

bool takes_lines(std::int64_t rows, std::int64_t k, std::int64_t n, std::int64_t more) {
  return HWY_DYNAMIC_DISPATCH(takes_lines_target)(rows, k, n, more);
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
