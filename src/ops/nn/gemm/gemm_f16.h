// The matrix product whose factors, and sums of up to 96 products, have 16 bits, on weights that are stored so
// (narrow_panels.h), for processors that compute twice as many of them at once. The sums are added up in f32.
//
// Numbers of 16 bits lose more than precision: beyond 65504 they are infinite, below 2^-14 they lose bits. So each
// piece of a left row is rounded as multiples of a power of two, which brings its largest number into [8, 16), and its
// sums are taken back when they are added up. No finite left row overflows, however large, if weights are within
// kMostHalfWeight.
//
// A result is: start, the bias or what y holds, plus, piece after piece, one fused multiply-add in f32 of the piece's
// scale and its sum, which is one chain of fused multiply-adds in 16 bits over ascending k. So results depend neither
// on tiling, threads, scratch nor on the processor, if it has half_products(). Freestanding, re-entrant; nothing is
// allocated.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/shape.h"
#include "ops/nn/gemm/gemm_f16_tile.h"
#include "ops/nn/gemm/gemm_f32.h"
#include "ops/nn/gemm/half_products.h"
#include "ops/nn/gemm/narrow_panels.h"
#include "ops/op.h"

namespace bantam::ops::gemm {

/// The most numbers of a piece, and weights with which no sum of so many exceeds 65504.
inline constexpr std::int64_t kMostHalfPiece = 96;
inline constexpr float kMostHalfWeight = 40.0F;

/// Numbers of a piece of rows of k; the last one may have fewer. As few pieces as may be, of about one length.
constexpr std::int64_t half_piece(std::int64_t k) noexcept {
  const std::int64_t pieces = std::max<std::int64_t>((k + kMostHalfPiece - 1) / kMostHalfPiece, 1);
  return ((k + pieces - 1) / pieces + 7) / 8 * 8;
}

/// Rows of the left matrix, rounded: those of k from a multiple of `piece` on.
struct HalfRows {
  std::uint16_t* numbers = nullptr;  ///< [rows, k rounded up to 8], of which k are used
  float* scales = nullptr;           ///< [rows, pieces]
  std::int64_t rows = 0;
  std::int64_t k = 0;
  std::int64_t piece = 0;
  std::int64_t pieces = 0;  ///< of k

  std::int64_t row_stride() const noexcept { return (k + 7) / 8 * 8; }
};

/// Rounds k floats to row `row`. Infinities and NaN stay what they are.
void round_row(const float* from, const HalfRows& to, std::int64_t row);

/// Rows times columns of the panels [first, last), of whose rows those from `first_k` on meet the left rows.
void multiply_halves(const HalfRows& a, const NarrowPanels& b, std::int64_t first, std::int64_t last,
                     std::int64_t first_k, const Result& y);

/// Memory of one thread for left rows: a float row that they are gathered into, and the rounded ones.
class HalfRoom {
 public:
  /// `bytes` are no fewer than least_bytes(). Rows are cut into parts of k, of whole pieces, where not all k of a tile
  /// fits.
  HalfRoom(std::byte* data, std::int64_t bytes, std::int64_t k, std::int64_t rows) noexcept : data_(data), k_(k) {
    const std::int64_t tile = std::min(rows, kMostHalfTileRows);
    part_ = bytes >= bytes_of(k, k, tile) ? k : half_piece(k);
    while (part_ < k && bytes >= bytes_of(std::min(part_ + half_piece(k), k), k, tile)) part_ += half_piece(k);
    part_ = std::min(part_, k);
    rows_ = std::min({rows, kMostRows, (bytes - gathered_bytes(part_)) / row_bytes(part_, k)});
  }

  static std::int64_t least_bytes(std::int64_t k, std::int64_t rows) noexcept {
    return bytes_of(std::min(half_piece(k), k), k, std::min(rows, kLeastRows));
  }
  /// With which it goes fastest: rows of some tiles, as long as they stay in the second-level cache.
  static std::int64_t useful_bytes(std::int64_t k, std::int64_t rows) noexcept {
    constexpr std::int64_t kCacheBytes = 262144;
    const std::int64_t fit = std::max(kCacheBytes / row_bytes(k, k), kMostHalfTileRows);
    return bytes_of(k, k, std::min({rows, kMostRows, fit}));
  }

  /// Makes the scratch suffice for rooms of that many threads too.
  static void add_to(Footprint& footprint, std::int64_t k, std::int64_t rows, int threads) noexcept {
    const auto of_all = [threads](std::int64_t bytes) { return align_up(bytes, kAlignment) * threads; };
    footprint.scratch_bytes = std::max(footprint.scratch_bytes, of_all(least_bytes(k, rows)));
    footprint.useful_scratch_bytes = std::max(footprint.useful_scratch_bytes, of_all(useful_bytes(k, rows)));
  }

  std::int64_t part() const noexcept { return part_; }  ///< of k that is there at once
  std::int64_t rows() const noexcept { return rows_; }
  float* gathered() const noexcept { return reinterpret_cast<float*>(data_); }

  /// Room for `rows` rows and `count` numbers of each.
  HalfRows half_rows(std::int64_t rows, std::int64_t count) const noexcept {
    HalfRows halves{.rows = rows, .k = count, .piece = half_piece(k_)};
    halves.pieces = (count + halves.piece - 1) / halves.piece;
    std::byte* numbers = data_ + gathered_bytes(part_);
    halves.numbers = reinterpret_cast<std::uint16_t*>(numbers);
    halves.scales = reinterpret_cast<float*>(numbers + rows * halves.row_stride() * kNumber);
    return halves;
  }

  static constexpr std::int64_t kMostRows = 96;  ///< no room has more

 private:
  static constexpr std::int64_t kNumber = sizeof(std::uint16_t);
  static constexpr std::int64_t kLeastRows = 4;

  static std::int64_t gathered_bytes(std::int64_t part) noexcept {
    return (part + 7) / 8 * 8 * static_cast<std::int64_t>(sizeof(float));
  }
  static std::int64_t row_bytes(std::int64_t part, std::int64_t k) noexcept {
    const std::int64_t pieces = (part + half_piece(k) - 1) / half_piece(k);
    return (part + 7) / 8 * 8 * kNumber + pieces * static_cast<std::int64_t>(sizeof(float));
  }
  static std::int64_t bytes_of(std::int64_t part, std::int64_t k, std::int64_t rows) noexcept {
    return gathered_bytes(part) + rows * row_bytes(part, k);
  }

  std::byte* data_;
  std::int64_t k_;
  std::int64_t part_ = 0;
  std::int64_t rows_ = 0;
};

/// All k of `rows` left rows times the panels [first, last). row(i, first_k, count, room) is where these numbers of row
/// i lie, or `room` if it wrote them there. HalfRoom::rows() rows are finished at once, in order: their results must
/// not lie where these rows do.
template <typename Row>
void multiply_half_rows(std::int64_t rows, Row row, const NarrowPanels& b, std::int64_t first, std::int64_t last,
                        const Result& y, const HalfRoom& room) {
  for (std::int64_t m = 0; m < rows; m += room.rows()) {
    const std::int64_t count = std::min(room.rows(), rows - m);
    for (std::int64_t k = 0; k < b.k; k += room.part()) {
      const std::int64_t numbers = std::min(room.part(), b.k - k);
      const HalfRows halves = room.half_rows(count, numbers);
      for (std::int64_t i = 0; i < count; ++i) round_row(row(m + i, k, numbers, room.gathered()), halves, i);
      Result part = part_of(y, 0, k, k + numbers == b.k);
      part.data += m * y.row_stride;
      multiply_halves(halves, b, first, last, k, part);
    }
  }
}

}  // namespace bantam::ops::gemm
