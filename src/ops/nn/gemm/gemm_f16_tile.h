// The innermost loops of gemm_f16.h, for processors that multiply and add 16-bit floating-point numbers: Arm's
// FEAT_FP16 and x86-64's AVX512-FP16, where the source is compiled for them (src/CMakeLists.txt). Called by
// gemm_f16_simd.cpp only; re-entrant, nothing is allocated.
#pragma once

#include <cstdint>

#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::gemm {

/// No machine has a tile of more rows: bounds scratch independently of the host.
inline constexpr std::int64_t kMostHalfTileRows = 14;

/// Columns of one vector, and the most vectors and rows of a tile.
#if defined(__aarch64__)
inline constexpr std::int64_t kHalfLanes = 8;
inline constexpr std::int64_t kHalfTileRows = 8;
#else
inline constexpr std::int64_t kHalfLanes = 32;
inline constexpr std::int64_t kHalfTileRows = kMostHalfTileRows;
#endif
inline constexpr std::int64_t kHalfTileVectors = 2;
inline constexpr std::int64_t kHalfColumns = kHalfLanes * kHalfTileVectors;

/// Some rows and columns. 16-bit numbers are the bits of IEEE's binary16.
struct HalfTile {
  const std::uint16_t* a = nullptr;  ///< row 0
  std::int64_t row_stride = 0;       ///< in numbers
  const float* scales = nullptr;     ///< of row 0, one per piece: what its numbers are multiples of
  std::int64_t scale_stride = 0;     ///< from a row to the next
  std::int64_t rows = 0;             ///< 1..kHalfTileRows
  std::int64_t k = 0;
  std::int64_t piece = 0;                ///< numbers whose products are summed in 16 bits; a multiple of 8
  const std::uint16_t* panel = nullptr;  ///< the first of the panels (narrow_panels.h), at the first row of k
  std::int64_t panel_stride = 0;         ///< from a panel to the next, in numbers
  std::int64_t panels = 0;               ///< that may be read, no more than the tile has columns for
  const std::uint16_t* ahead = nullptr;  ///< panels that come next: the tile fetches a part of them, so much per k
  std::int64_t ahead_step = 0;           ///< in numbers
  std::int64_t vectors = 0;              ///< 1..kHalfTileVectors
  const float* start = nullptr;          ///< what the sums of row 0 start at, as many as there are columns
  std::int64_t start_stride = 0;         ///< from a row to the next; 0: all rows start alike
  bool clamps = false;                   ///< results are limited to [low, high]; NaN stays NaN
  float low = 0;
  float high = 0;
  float* y = nullptr;  ///< [rows, vectors * kHalfLanes], rows y_stride apart; may be `start`
  std::int64_t y_stride = 0;
};

using HalfTileFunction = void (*)(const HalfTile&) noexcept;

/// y = start + for piece after piece, in f32: scale * the sum of products, one chain of fused multiply-adds in 16 bits
/// over ascending k. Null where this build has no such loops; the processor must have the instructions.
HalfTileFunction half_tile_function() noexcept;

}  // namespace bantam::ops::gemm
