// Sums of products of bytes by Advanced Matrix Extensions, AMX-INT8: the innermost loops of gemm_i8.h on x86-64
// processors that have them (byte_products.h). A tile register holds sixteen rows of 64 bytes; one instruction
// multiplies a tile of left bytes by sixteen quads of a panel, which lie as a tile does. Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 1, chapter 18. Called by gemm_i8_simd.cpp only; exact; nothing is
// allocated.
#pragma once

#include <cstdint>

#include "ops/nn/gemm/gemm_i8.h"

namespace bantam::ops::gemm {

/// Rows and panels that are summed in one call.
inline constexpr std::int64_t kAmxRows = 64;
inline constexpr std::int64_t kAmxPanels = 2;

/// Numbers from one row of sums to the next.
inline constexpr std::int64_t kAmxSumsStride = 4 * kPanel;

/// Rows of bytes that are multiplied in tiles.
struct AmxRows {
  const std::uint8_t* data = nullptr;
  std::int64_t stride = 0;
  bool is_signed = false;  ///< what the bytes count as
  std::int64_t rows = 0;
  std::int64_t quads = 0;  ///< of a row, which is read up to their end and no further
};

/// Up to kAmxPanels neighbouring panels.
struct AmxPanels {
  const std::int8_t* data = nullptr;
  std::int64_t stride = 0;  ///< bytes from one to the next
  std::int64_t count = 0;
  const std::int32_t* start = nullptr;  ///< what the sums of their columns start at
};

/// The tile registers of this thread, from the first call of set_rows to the end. Rows are cut into tiles of one
/// height, of which the last may repeat rows of the one before.
class AmxTiles {
 public:
  AmxTiles() noexcept = default;
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
  ~AmxTiles();

  /// At least one row and one quad. Panels are to be set again.
  void set_rows(const AmxRows& rows) noexcept;

  void set_panels(const AmxPanels& panels) noexcept;

  /// Groups of up to kAmxRows rows.
  std::int64_t groups() const noexcept { return (tiles_ + kTilesOfGroup - 1) / kTilesOfGroup; }

  struct Rows {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };

  /// sums[r][c] = start[c] + the sum of a[first + r][k] * b[k][c] for the rows of a group, which are returned; those of
  /// the last group may begin within the one before. Rows of sums are kAmxSumsStride apart and begin, as `start` does,
  /// at multiples of 64 bytes.
  Rows sum(std::int64_t group, std::int32_t* sums) const noexcept;

 private:
  static constexpr std::int64_t kTileRows = 16;
  static constexpr std::int64_t kTileBytes = 64;  ///< of a row
  static constexpr std::int64_t kTileQuads = kTileBytes / 4;
  static constexpr std::int64_t kTilesOfGroup = kAmxRows / kTileRows;

  /// Tiles and panels that are summed at once.
  template <int kTiles, int kPanels>
  void sum_tiles(std::int64_t tile, std::int32_t* sums) const noexcept;
  template <bool kSigned, int kTiles, int kPanels>
  void multiply_tiles(const std::uint8_t* const (&rows)[kTiles]) const noexcept;

  std::int64_t first_row(std::int64_t tile) const noexcept {
    return tile * height_ < a_.rows - height_ ? tile * height_ : a_.rows - height_;
  }

  bool in_use_ = false;
  AmxRows a_;
  AmxPanels b_;
  std::int64_t tiles_ = 0;
  std::int64_t height_ = 0;  ///< rows of a tile
  std::int64_t width_ = 0;   ///< quads of a tile
  std::int64_t steps_ = 0;   ///< products of such tiles
  std::int64_t last_ = 0;    ///< quads behind them, fewer than width_
  /// The last quads of the panels behind zeros: as much as a tile of left bytes has that ends where rows do.
  alignas(64) std::int8_t last_quads_[kAmxPanels][kTileQuads * kTileBytes];
};

}  // namespace bantam::ops::gemm
