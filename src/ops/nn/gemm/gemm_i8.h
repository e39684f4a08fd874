// The int8 matrix product that the int8 and hybrid forms of conv2d and matmul share, and conv2d_affine and
// matmul_affine; exact.
//
// Panel layout (fixed, whatever the host's vectors): the columns of the right matrix [K,N] are cut into panels of 16;
// panel p holds, for k = 0, 2, 4 ..., the 16 pairs (k, k + 1) of columns 16p..16p+15, zero beyond N and K. The left
// matrix is asked for in pieces, which come widened to int16, zero points subtracted, in a workspace that the caller
// gives: rows in full where it has room, else a part of K of a few rows at a time, whose sums add up. Sums are int32
// and wrap, so results do not depend on the workspace. Freestanding, re-entrant; nothing is allocated.
#pragma once

#include <cstdint>

#include "ops/common/affine_form.h"
#include "ops/common/linear_form.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::gemm {

constexpr std::int64_t pair_count(std::int64_t k) noexcept { return (k + 1) / 2; }

/// Bytes of the packed form of a [k,n] matrix.
constexpr std::int64_t packed_i8_bytes(std::int64_t k, std::int64_t n) noexcept {
  return panel_count(n) * pair_count(k) * 2 * kPanel;
}

/// Packs the matrix whose element (k, n) is b[k * k_stride + n * n_stride].
void pack_panels_i8(const std::int8_t* b, std::int64_t k, std::int64_t n, std::int64_t k_stride, std::int64_t n_stride,
                    std::int8_t* packed) noexcept;

/// Numbers of one row of the left matrix, padded to whole pairs.
constexpr std::int64_t row_numbers(std::int64_t k) noexcept { return 2 * pair_count(k); }

/// The left matrix [rows, k].
struct LeftSourceI16 {
  /// Writes numbers [first, first + count) of rows [row, row + rows), each padded with a zero to an even count, one row
  /// right after the other. `first` is even.
  using Gather = void (*)(const void* context, std::int64_t row, std::int64_t rows, std::int64_t first,
                          std::int64_t count, std::int16_t* to);

  std::int64_t rows = 0;
  std::int64_t k = 0;
  Gather gather = nullptr;
  const void* context = nullptr;
};

/// Where pieces of the left matrix are put; at least least_numbers() of them.
struct Workspace {
  std::int16_t* numbers = nullptr;
  std::int64_t count = 0;
};

/// The most rows that are widened at once.
inline constexpr std::int64_t kMaxBlockRows = 4 * kMaxTileRows;

/// A workspace in which products of up to `rows` rows work, if a little slower: two kilobytes, or all that there is or
/// that can be used.
constexpr std::int64_t least_numbers(std::int64_t rows, std::int64_t k) noexcept {
  constexpr std::int64_t kLeastBlock = 1024;
  constexpr std::int64_t kHalfTile = kMaxTileRows / 2;
  const std::int64_t tile = rows < 1 ? 1 : rows < kMaxTileRows ? rows : kMaxTileRows;
  const std::int64_t part = kLeastBlock / tile / 2 * 2;
  if (row_numbers(k) <= part) return tile * row_numbers(k);
  return tile == kMaxTileRows && kHalfTile * row_numbers(k) <= kLeastBlock ? kHalfTile * row_numbers(k) : tile * part;
}

/// The workspace in which they are fastest: many rows reuse the weights, few stay in the cache.
constexpr std::int64_t useful_numbers(std::int64_t rows, std::int64_t k) noexcept {
  constexpr std::int64_t kBlockNumbers = 12288;
  const std::int64_t tiles = kBlockNumbers / (k < 1 ? 1 : k);
  const std::int64_t most = kMaxTileRows * (tiles < 1 ? 1 : tiles < 4 ? tiles : 4);
  return (rows < most ? rows : most) * row_numbers(k);
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

void multiply(const LeftSourceI16& a, const Workspace& workspace, const RightPanelsI8& b, const Int8Result& y);
void multiply(const LeftSourceI16& a, const Workspace& workspace, const RightPanelsI8& b, const Int16Result& y);
void multiply(const LeftSourceI16& a, const Workspace& workspace, const RightPanelsI8& b, const HybridResult& y);
void multiply(const LeftSourceI16& a, const Workspace& workspace, const RightPanelsI8& b,
              const AffineResult<std::uint8_t>& y);
void multiply(const LeftSourceI16& a, const Workspace& workspace, const RightPanelsI8& b,
              const AffineResult<std::int32_t>& y);
void multiply(const LeftSourceI16& a, const Workspace& workspace, const RightPanelsI8& b, const AffineResult<float>& y);

/// to[i] = from[i] - zero_point. `from` may be the upper half of the memory of `to`.
void widen(const std::int8_t* from, std::int64_t n, std::int32_t zero_point, std::int16_t* to);
void widen(const std::uint8_t* from, std::int64_t n, std::int32_t zero_point, std::int16_t* to);

/// largest_magnitude and quantize_symmetric of linear_form.h, to the bit.
float largest_magnitude_simd(const float* x, std::int64_t n, float previous);
void quantize_symmetric_simd(const float* x, std::int64_t n, float scale, std::int8_t* q);

}  // namespace bantam::ops::gemm
