// The int8 matrix product that the int8 and hybrid forms of conv2d and matmul share, and conv2d_affine and
// matmul_affine; exact.
//
// Panel layout (fixed, whatever the host's vectors): the columns of the right matrix [K,N] are cut into panels of 16;
// panel p holds, for k = 0, 2, 4 ..., the 16 pairs (k, k + 1) of columns 16p..16p+15, zero beyond N and K. The left
// matrix comes widened to int16, zero points subtracted, rows padded with a zero to an even length, so that one
// instruction multiplies and adds a pair. Sums are int32 and wrap. Freestanding, re-entrant; nothing is allocated.
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

/// Rows of the left matrix, each 2 * pairs numbers.
struct LeftRowsI16 {
  const std::int16_t* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t pairs = 0;
};

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
  const std::int32_t* row_sums = nullptr;  ///< of the left matrix; null when the columns' zero points are 0
  ZeroPoints zero_points;                  ///< of the columns
};

void multiply(const LeftRowsI16& a, const RightPanelsI8& b, const Int8Result& y);
void multiply(const LeftRowsI16& a, const RightPanelsI8& b, const Int16Result& y);
void multiply(const LeftRowsI16& a, const RightPanelsI8& b, const HybridResult& y);
void multiply(const LeftRowsI16& a, const RightPanelsI8& b, const AffineResult<std::uint8_t>& y);
void multiply(const LeftRowsI16& a, const RightPanelsI8& b, const AffineResult<std::int32_t>& y);
void multiply(const LeftRowsI16& a, const RightPanelsI8& b, const AffineResult<float>& y);

/// to[i] = from[i] - zero_point.
void widen(const std::int8_t* from, std::int64_t n, std::int32_t zero_point, std::int16_t* to);
void widen(const std::uint8_t* from, std::int64_t n, std::int32_t zero_point, std::int16_t* to);

/// sums[m] = the sum of row m, wrapping.
void sum_rows(const LeftRowsI16& a, std::int32_t* sums);

/// largest_magnitude and quantize_symmetric of linear_form.h, to the bit.
float largest_magnitude_simd(const float* x, std::int64_t n, float previous);
void quantize_symmetric_simd(const float* x, std::int64_t n, float scale, std::int8_t* q);

}  // namespace bantam::ops::gemm
