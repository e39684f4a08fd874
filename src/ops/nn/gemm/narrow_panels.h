// Packed panels of weights that are stored in fewer bits than f32 and multiplied as what they stand for. The kernels of
// conv2d, matmul, lstm and gru that narrow their weights (ops/narrowing.h) use them: either a few panels at
// a time are widened into scratch, in the layout of gemm_f32.h, and meet all rows there, or a single row is multiplied
// by panels that are widened in registers. Both give the bits that the same weights give in f32.
//
// Types and layout of a panel of 16 columns, row after row of k:
//   f16        16 numbers a row; rounded to nearest, ties to even
//   bf16       the same, column c + 8 behind column c
//   i8         16 scales in f32, then 16 numbers q a row: weight = q * scale, scale = max|column| / 127, q = weight /
//              scale to nearest, ties to even
//   i4         blocks of 32 rows (the last may be shorter): 16 scales in f16, then 8 bytes a row, byte c with the q of
//              column c in its low half and of column c + 8 in its high half, each plus 8: scale = max|block of the
//              column| / 7 rounded to f16, q = weight / scale to nearest, ties to even, in [-7, 7]
// Columns beyond n are zero. Freestanding, re-entrant; nothing is allocated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "bantam/tensor.h"
#include "bantam/threads.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::gemm {

/// Rows of k that share a scale in 4 bits.
inline constexpr std::int64_t kScaleBlock = 32;

struct NarrowPanels {
  ElementType type = ElementType::kF16;  ///< or kF32 where a function says that it takes panels of gemm_f32.h too
  const std::byte* data = nullptr;       ///< panel 0
  std::int64_t k = 0;
  std::int64_t n = 0;     ///< columns of the whole matrix
  bool backward = false;  ///< multiply_row, and products of f32, begin with the last panels
};

/// Bytes of one panel of that many rows.
constexpr std::int64_t narrow_panel_bytes(ElementType type, std::int64_t k) noexcept {
  const std::int64_t numbers = k * kPanel * element_bits(type) / 8;
  switch (type) {
    case ElementType::kI8: return numbers + kPanel * static_cast<std::int64_t>(sizeof(float));
    case ElementType::kI4: return numbers + (k + kScaleBlock - 1) / kScaleBlock * kPanel * 2;
    default: return numbers;
  }
}

/// Bytes of the packed form of a [k,n] matrix.
constexpr std::int64_t narrow_bytes(ElementType type, std::int64_t k, std::int64_t n) noexcept {
  return panel_count(n) * narrow_panel_bytes(type, k);
}

/// Packs the matrix whose element (k, n) is b[k * k_stride + n * n_stride]; kF32 is fine. Requires finite elements,
/// within the range of f16 if that is the type.
void pack_narrow(ElementType type, const float* b, std::int64_t k, std::int64_t n, std::int64_t k_stride,
                 std::int64_t n_stride, std::byte* packed) noexcept;

/// The inverse: writes the weights that the panels stand for.
void restore_narrow(const NarrowPanels& panels, std::int64_t k_stride, std::int64_t n_stride, float* b) noexcept;

/// Rows [first_k, first_k + count) of panels [first, last) in the layout of gemm_f32.h, count rows a panel.
void widen(const NarrowPanels& panels, std::int64_t first, std::int64_t last, std::int64_t first_k, std::int64_t count,
           float* wide);

/// One row of k floats times the columns of panels [first, last). `y.data` is where column 0 goes; the rest of y as in
/// gemm_f32.h, with y.resumes and y.ends at their defaults.
void multiply_row(const float* a, const NarrowPanels& b, std::int64_t first, std::int64_t last, const Result& y);

/// Panels [first, last).
struct PanelRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

constexpr PanelRange all_panels(const NarrowPanels& b) noexcept { return {0, panel_count(b.n)}; }

/// Rows of k floats, one after another, times the columns of some panels; kF32 is fine. Several rows meet narrow panels
/// in pieces that are widened on the stack. `y` is where column 0 goes, its rows n floats apart; `bias` may be where a
/// single row's result is. Threads share the panels of products that take long enough.
void multiply_rows(const Threads& threads, const float* a, std::int64_t rows, const NarrowPanels& b, PanelRange panels,
                   const float* bias, float* y);

/// The same, but what y holds already is added to: in the bits of bias and product at once. Rows of y are `stride`
/// floats apart.
void add_rows(const Threads& threads, const float* a, std::int64_t rows, const NarrowPanels& b, PanelRange panels,
              float* y, std::int64_t stride);

/// Panels that fill a tile where vectors are wide, and the rows of them that are worth widening at once.
inline constexpr std::int64_t kTilePanels = 3;
inline constexpr std::int64_t kTileRows = 128;

/// Floats for panels being widened: the least, which is a small part of the `values` that the product reads and writes,
/// and with how many it goes fastest, which is when rows of a are read as seldom as the second-level cache allows.
struct WideFloats {
  std::int64_t least = 0;
  std::int64_t useful = 0;
};

constexpr WideFloats wide_floats(std::int64_t k, std::int64_t n, std::int64_t values) noexcept {
  constexpr std::int64_t kLeastRows = 64;
  constexpr std::int64_t kMostRows = 512;
  constexpr std::int64_t kUsefulFloats = 32768;
  constexpr std::int64_t kPart = 16;
  const std::int64_t panel = k * kPanel;
  const std::int64_t panels = std::max<std::int64_t>(kUsefulFloats / std::max<std::int64_t>(panel, 1), kTilePanels);
  const std::int64_t useful = std::min(panels, panel_count(n)) * panel;
  const std::int64_t tile = std::min(std::min(k, kMostRows) * kPanel * kTilePanels, useful);
  return {std::max(std::min(k, kLeastRows) * kPanel, std::min(values / kPart, tile)), useful};
}

/// Room for panels being widened, and the most rows of a piece.
struct WideRoom {
  float* data = nullptr;
  std::int64_t floats = 0;  ///< no fewer than wide_floats().least
  std::int64_t most_rows = 0;
};

/// Widens panels [first, last) in blocks that fit the room and calls f(right, column, first_k, count): `right` has rows
/// [first_k, first_k + count) of k, as rows 0 to count, of the columns from `column` on. Blocks are whole panels, or
/// pieces of those that fill a tile in ascending order of k, or of one.
template <typename F>
void for_each_widened(const NarrowPanels& b, std::int64_t first, std::int64_t last, const WideRoom& room, F f) {
  const std::int64_t whole = std::min(room.floats / (b.k * kPanel), last - first);
  const std::int64_t pieces =
      std::clamp<std::int64_t>(room.floats / (std::min(b.k, kTileRows) * kPanel), 1, kTilePanels);
  std::int64_t panels = std::min(pieces, last - first);
  if (whole > kTilePanels) panels = whole < last - first ? whole / kTilePanels * kTilePanels : whole;
  const std::int64_t rows = whole >= panels ? b.k : std::min(room.floats / (kPanel * panels), room.most_rows);
  for (std::int64_t p = first; p < last; p += panels) {
    const std::int64_t end = std::min(p + panels, last);
    const std::int64_t columns = std::min(end * kPanel, b.n) - p * kPanel;
    for (std::int64_t k = 0; k < b.k; k += rows) {
      const std::int64_t count = std::min(rows, b.k - k);
      widen(b, p, end, k, count, room.data);
      f(RightPanels{.data = room.data, .n = columns, .first = 0, .last = end - p}, p * kPanel, k, count);
    }
  }
}

/// The result of columns from `column` on, for rows [first_k, first_k + count) of k.
inline Result part_of(const Result& y, std::int64_t column, std::int64_t first_k, bool ends) noexcept {
  Result part = y;
  part.data += column;
  if (part.bias != nullptr) part.bias += column;
  part.resumes = first_k > 0;
  part.ends = ends;
  return part;
}

}  // namespace bantam::ops::gemm
