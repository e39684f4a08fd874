// The int8 matrix product that the int8 and hybrid forms of conv2d and matmul share, and conv2d_affine and
// matmul_affine; exact.
//
// Panel layout (fixed, whatever the host's vectors): the columns of the right matrix [K,N] are cut into panels of 16;
// panel p holds, for k = 0, 4, 8 ..., the 16 quads (k ... k + 3) of columns 16p..16p+15, zero beyond N and K, and then
// the sums of these columns, int32. The left matrix consists of bytes, which are read where they lie or asked for in
// pieces, or of numbers of 16 bits. Where the processor multiplies bytes (VNNI, 64-bit Arm), they are used as they
// are and the zero point is taken off by the columns' sums; with AVX2 alone too, in pairs, where that is exact
// (saturating_pairs-inl.h); elsewhere they are widened to 16 bits. Pieces are put into a workspace that the caller
// gives: rows in full where it has room, else a part of K of a few rows at a time, whose sums add up. Sums are int32
// and wrap, so results do not depend on the workspace. Freestanding, re-entrant; nothing is allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/shape.h"
#include "ops/common/affine_form.h"
#include "ops/common/linear_form.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::gemm {

constexpr std::int64_t quad_count(std::int64_t k) noexcept { return (k + 3) / 4; }

/// Bytes of a panel of a matrix of k rows.
constexpr std::int64_t panel_bytes(std::int64_t k) noexcept {
  return quad_count(k) * 4 * kPanel + kPanel * static_cast<std::int64_t>(sizeof(std::int32_t));
}

/// Bytes of the packed form of a [k,n] matrix.
constexpr std::int64_t packed_i8_bytes(std::int64_t k, std::int64_t n) noexcept {
  return panel_count(n) * panel_bytes(k);
}

/// Packs the matrix whose element (k, n) is element(k, n).
template <typename Element>
void pack_panels_of(std::int64_t k, std::int64_t n, Element element, std::int8_t* packed) {
  std::fill_n(packed, packed_i8_bytes(k, n), std::int8_t{0});
  for (std::int64_t first = 0; first < n; first += kPanel, packed += panel_bytes(k)) {
    std::uint32_t sums[kPanel] = {};
    for (std::int64_t i = 0; i < std::min(n - first, kPanel); ++i)
      for (std::int64_t row = 0; row < k; ++row) {
        const std::int8_t value = element(row, first + i);
        packed[(row / 4 * kPanel + i) * 4 + row % 4] = value;
        sums[i] += static_cast<std::uint32_t>(std::int32_t{value});
      }
    std::memcpy(packed + quad_count(k) * 4 * kPanel, sums, sizeof sums);
  }
}

/// Packs the matrix whose element (k, n) is b[k * k_stride + n * n_stride] with the bits of `flip` inverted.
void pack_panels_i8(const std::int8_t* b, std::int64_t k, std::int64_t n, std::int64_t k_stride, std::int64_t n_stride,
                    std::uint8_t flip, std::int8_t* packed) noexcept;

/// The same, fast where rows or columns lie in one piece.
void pack_panels_i8_simd(const std::int8_t* b, std::int64_t k, std::int64_t n, std::int64_t k_stride,
                         std::int64_t n_stride, std::uint8_t flip, std::int8_t* packed);

/// Numbers of one row of the left matrix, padded to whole quads.
constexpr std::int64_t row_numbers(std::int64_t k) noexcept { return 4 * quad_count(k); }

/// How rows of windows lie in an image: in lines, and the numbers of each in segments, which are the rows of windows.
struct Lines {
  std::int64_t rows = 0;  ///< of each line, whose first byte lies `stride` behind the one before; 0: no lines
  std::int64_t stride = 0;
  std::int64_t segment = 0;         ///< numbers that lie in one piece, a multiple of four; k has whole segments
  std::int64_t segment_stride = 0;  ///< bytes from one to the next
};

/// The left matrix [rows, k]: bytes, or what `gather_numbers` gives.
struct LeftSource {
  /// Writes numbers [first, first + count) of rows [row, row + rows), row after row, each `stride` numbers behind the
  /// one before. `first` is a multiple of four.
  template <typename Number>
  using Gather = void (*)(const void* context, std::int64_t row, std::int64_t rows, std::int64_t first,
                          std::int64_t count, std::int64_t stride, Number* to);

  std::int64_t rows = 0;
  std::int64_t k = 0;
  /// A byte b stands for the number (b ^ flip) - zero, with b ^ flip in [0, 255].
  std::uint8_t flip = 0;
  std::int32_t zero = 0;
  const std::uint8_t* data = nullptr;  ///< bytes that need no gathering: element k of row m at data[m * row_stride + k]
  std::int64_t row_stride = 0;
  /// Of `data`, with `flip` 0, rows a multiple of its rows: nothing else is asked for. Only where takes_lines.
  Lines lines{};
  /// Results of rows may be written over `data`, but not over that of later rows; nor, of kMaxTileRows rows and those
  /// before, over that of these rows.
  bool overwritten = false;
  Gather<std::uint8_t> gather_bytes = nullptr;
  Gather<std::int16_t> gather_numbers = nullptr;  ///< not null: the numbers have 16 bits
  const void* context = nullptr;
};

/// How an 8-bit operand becomes the bytes of a LeftSource.
struct ByteForm {
  std::uint8_t flip = 0;
  std::int32_t zero = 0;
};

/// Of an operand that becomes int8 with that zero point by `sign_flip` (see affine_form.h; 0 for int8 itself).
constexpr ByteForm byte_form(std::uint8_t sign_flip, std::int32_t zero_point) noexcept {
  return {static_cast<std::uint8_t>(sign_flip ^ 0x80), zero_point + 128};
}

/// Where pieces of the left matrix are put; at least least_numbers() of them.
struct Workspace {
  std::int16_t* numbers = nullptr;
  std::int64_t count = 0;
};

/// The most rows that are fetched at once.
inline constexpr std::int64_t kMaxBlockRows = 20 * kMaxTileRows;

/// Rows of k numbers, in whole tiles, for which there is room in so many.
constexpr std::int64_t rows_within(std::int64_t numbers, std::int64_t k) noexcept {
  return numbers / row_numbers(k < 1 ? 1 : k) / kMaxTileRows * kMaxTileRows;
}

/// The most of k numbers: every panel of weights begins and ends with a block, but its rows should stay in the
/// first-level cache meanwhile.
constexpr std::int64_t most_block_rows(std::int64_t k) noexcept {
  return std::clamp(rows_within(16384, k), 5 * kMaxTileRows, kMaxBlockRows);
}

/// The most of numbers of 16 bits, which are to stay in the second-level cache.
constexpr std::int64_t most_wide_rows(std::int64_t k) noexcept {
  return std::clamp(rows_within(65536, k), 2 * kMaxTileRows, most_block_rows(k));
}

/// Into how many rows each to cut `total` rows, so that no piece has more than `most` and all are about the same.
constexpr std::int64_t even_rows(std::int64_t total, std::int64_t most) noexcept {
  const std::int64_t pieces = (total + most - 1) / most;
  return pieces < 1 ? 1 : (total + pieces - 1) / pieces;
}

/// How many of `total` rows to take at once, at most `most`: about as many as each time after, in whole tiles.
constexpr std::int64_t block_rows(std::int64_t total, std::int64_t most) noexcept {
  return std::min({total, most, align_up(even_rows(total, most), kMaxTileRows)});
}

inline constexpr std::int64_t kLeastBlock = 1024;  ///< numbers

/// A workspace in which products of up to `rows` rows work, if a little slower: of a tile or half a tile, two kilobytes
/// or all that there is. No fewer rows need more.
constexpr std::int64_t least_numbers(std::int64_t rows, std::int64_t k) noexcept {
  const std::int64_t row = row_numbers(k);
  std::int64_t tile = kMaxTileRows;
  if (tile * row > kLeastBlock) tile /= 2;
  return std::min(std::clamp<std::int64_t>(rows, 1, tile) * row, kLeastBlock);
}

/// One that is enough for a smaller k too, of which a whole tile may need more than half a tile here.
constexpr std::int64_t least_numbers_up_to(std::int64_t rows, std::int64_t k) noexcept {
  return std::min(std::max<std::int64_t>(rows, 1) * row_numbers(k), kLeastBlock);
}

/// The workspace in which they are fastest: of bytes it holds as many rows as are worth it, so that weights that lie
/// beyond the second-level cache are read but once or twice.
constexpr std::int64_t useful_numbers(std::int64_t rows, std::int64_t k) noexcept {
  const std::int64_t most = std::clamp(rows_within(3 * 65536, k), 2 * kMaxTileRows, most_block_rows(k));
  return (rows < most ? rows : most) * row_numbers(k);
}

/// Bytes of the workspace of one thread, multiples of kAlignment.
struct ProductScratch {
  std::int64_t least = 0;
  std::int64_t useful = 0;
};

/// A workspace of so many bytes is a small part of those of the operands, and enough not to fetch rows in pieces.
inline constexpr std::int64_t kSmallPart = 32;
inline constexpr std::int64_t kEnoughBytes = 8192;

/// For products of so many rows whose operands, weights too, and result take `bytes`. The least: what they need anyway,
/// but whole rows of half a tile or more where those are a small part of these bytes: in pieces of rows products take
/// up to twice as long, and each block of rows begins and ends every panel of weights.
constexpr ProductScratch product_scratch(std::int64_t rows, std::int64_t k, std::int64_t bytes) noexcept {
  constexpr std::int64_t kNumber = sizeof(std::int16_t);
  const std::int64_t useful = useful_numbers(rows, k) * kNumber;
  const std::int64_t tile = kMaxTileRows * row_numbers(k) * kNumber;
  const std::int64_t small_part = bytes / kSmallPart;
  std::int64_t affordable = small_part < tile / 2 ? 0 : tile / 2;
  if (tile > 0 && small_part >= tile)
    affordable = std::max(std::min(small_part, kEnoughBytes) / tile, std::int64_t{1}) * tile;
  const std::int64_t least = std::max(least_numbers(rows, k) * kNumber, std::min(affordable, useful));
  return {align_up(least, kAlignment), align_up(useful, kAlignment)};
}

/// The same where k too may be smaller when the product runs, as the length of a sequence may: no smaller rows, k and
/// bytes give more.
constexpr ProductScratch product_scratch_up_to(std::int64_t rows, std::int64_t k, std::int64_t bytes) noexcept {
  constexpr std::int64_t kNumber = sizeof(std::int16_t);
  const std::int64_t tile = kMaxTileRows * row_numbers(k) * kNumber;
  const std::int64_t affordable = std::min(bytes / kSmallPart, std::max(kEnoughBytes, tile));
  const std::int64_t least =
      std::max(least_numbers_up_to(rows, k) * kNumber, std::min(affordable, rows * row_numbers(k) * kNumber));
  return {align_up(least, kAlignment), align_up(std::max(least, useful_numbers(rows, k) * kNumber), kAlignment)};
}

struct RightPanelsI8 {
  const std::int8_t* data = nullptr;  ///< panel 0
  std::int64_t n = 0;                 ///< columns of the whole matrix
  std::int64_t first = 0;             ///< panels [first, last) are computed
  std::int64_t last = 0;
};

/// y[m * row_stride + n] of the int8 form; channel n of the requantizer belongs to column n.
struct Int8Result {
  std::int8_t* data = nullptr;
  std::int64_t row_stride = 0;
  Requantizer requantize;
};

/// y[m * row_stride + n] of the int16 form, whose left matrix are the operand's own numbers; channel n of the
/// requantizer belongs to column n. Sums are exact: they leave 32 bits before they could overflow.
struct Int16Result {
  std::int16_t* data = nullptr;
  std::int64_t row_stride = 0;
  Requantizer16 requantize;
};

/// y[m * row_stride + n] of the hybrid form; channel n of the scaler belongs to column n.
struct HybridResult {
  float* data = nullptr;
  std::int64_t row_stride = 0;
  const float* row_scales = nullptr;  ///< of the quantised rows
  HybridScaler scaler;
  Activation activation{};
};

/// y[m * row_stride + n] of ONNX's arithmetic; channel n of the scaler belongs to column n. Y is u8 (of i8 results
/// too), i32 or f32.
template <typename Y>
struct AffineResult {
  Y* data = nullptr;
  std::int64_t row_stride = 0;
  AffineScaler scaler;
  ZeroPoints zero_points;  ///< of the columns
};

/// Are lines of so many rows, of k numbers and `more` that mean nothing, multiplied where they lie, by n columns
/// without zero points, and faster than rows that are copied? To be asked before others than these are given.
bool takes_lines(std::int64_t rows, std::int64_t k, std::int64_t n, std::int64_t more);

void multiply(const LeftSource& a, const Workspace& workspace, const RightPanelsI8& b, const Int8Result& y);
void multiply(const LeftSource& a, const Workspace& workspace, const RightPanelsI8& b, const Int16Result& y);
void multiply(const LeftSource& a, const Workspace& workspace, const RightPanelsI8& b, const HybridResult& y);
void multiply(const LeftSource& a, const Workspace& workspace, const RightPanelsI8& b,
              const AffineResult<std::uint8_t>& y);
void multiply(const LeftSource& a, const Workspace& workspace, const RightPanelsI8& b,
              const AffineResult<std::int32_t>& y);
void multiply(const LeftSource& a, const Workspace& workspace, const RightPanelsI8& b, const AffineResult<float>& y);

/// to[i] = (from[i] ^ flip) - zero. `from` may be the upper half of the memory of `to`.
void widen(const std::uint8_t* from, std::int64_t n, ByteForm form, std::int16_t* to);

/// largest_magnitude and quantize_symmetric of linear_form.h, to the bit.
float largest_magnitude_simd(const float* x, std::int64_t n, float previous);
void quantize_symmetric_simd(const float* x, std::int64_t n, float scale, std::int8_t* q);

}  // namespace bantam::ops::gemm
