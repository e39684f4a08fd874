// The innermost loops of gemm_i8.h on 64-bit Arm, for what the processor has: NEON alone, dot products, products of
// matrices. Called by gemm_i8_tiles-inl.h only; exact, re-entrant, nothing is allocated.
#pragma once

#include <cstdint>

#include "ops/nn/gemm/gemm_i8.h"

namespace bantam::ops::gemm {

inline constexpr std::int64_t kArmTileRows = 6;

/// Some rows of bytes and a panel. Bytes are signed ones once the bits of `flip` are inverted. All have `quads` quads;
/// rows may be read up to their last byte and no further.
struct ArmTile {
  const std::uint8_t* a = nullptr;
  std::int64_t row_stride = 0;
  std::uint8_t flip = 0;
  std::int64_t rows = 0;  ///< 1..kArmTileRows
  std::int64_t quads = 0;
  const std::int8_t* panel = nullptr;
  bool narrow = false;                  ///< only the first half of the panel's columns is asked for
  bool sums_two = false;                ///< two products of the panel fit into 16 bits: see two_products_fit()
  const std::int32_t* start = nullptr;  ///< what the columns' sums start at
  std::int32_t* sums = nullptr;         ///< [kArmTileRows, kPanel]; rows that were not asked for are undefined
};

/// Is no weight of `quads` quads of a panel -128? Then two products have less than 2^15.
bool two_products_fit(const std::int8_t* panel, std::int64_t quads) noexcept;

/// sums[r][c] = start[c] + the sum of the signed a[r][k] * b[k][c]: NEON has products of signed bytes only.
void sum_bytes_neon(const ArmTile& tile) noexcept;
void sum_bytes_dotprod(const ArmTile& tile) noexcept;
void sum_bytes_i8mm(const ArmTile& tile) noexcept;

}  // namespace bantam::ops::gemm
