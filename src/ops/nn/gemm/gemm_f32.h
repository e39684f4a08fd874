// The f32 matrix product that conv2d and matmul share: rows times packed panels, with bias and activation.
//
// Panel layout (fixed, whatever the host's vectors): the columns of the right matrix [K,N] are cut into panels of 16;
// panel p holds, for k = 0..K-1, the 16 values of columns 16p..16p+15, zero beyond N. So a panel is K rows of 64 bytes
// and is read from front to back.
//
// Rows of the left matrix need not be contiguous: a row is a two-level sequence of segments, so that a convolution
// reads its taps where they lie. All rows of one call are the same distance apart. Every output is one chain of fused
// multiply-adds over ascending k, starting from the bias, so results depend neither on tiling nor on threads.
// Freestanding, re-entrant; nothing is allocated.
#pragma once

#include <cstdint>

#include "ops/elementwise/unary/function.h"

namespace bantam::ops::gemm {

inline constexpr std::int64_t kPanel = 16;

constexpr std::int64_t panel_count(std::int64_t n) noexcept { return (n + kPanel - 1) / kPanel; }

/// Floats of the packed form of a [k,n] matrix.
constexpr std::int64_t packed_floats(std::int64_t k, std::int64_t n) noexcept { return panel_count(n) * k * kPanel; }

/// Packs panels [first, last) of the matrix whose element (k, n) is b[k * k_stride + n * n_stride].
void pack_panels(const float* b, std::int64_t k, std::int64_t n, std::int64_t k_stride, std::int64_t n_stride,
                 std::int64_t first, std::int64_t last, float* packed) noexcept;

/// The same with vectors, for what is packed while a model runs.
void pack_panels_simd(const float* b, std::int64_t k, std::int64_t n, std::int64_t k_stride, std::int64_t n_stride,
                      std::int64_t first, std::int64_t last, float* packed);

/// Panels of k rows that are worth a thread to pack: some microseconds of work.
constexpr std::int64_t packing_grain(std::int64_t k) noexcept { return 4096 / (k + 1) + 1; }

/// Rows of the left matrix. Element k of row m, with k = (o * segments + s) * length + i, is
/// data[m * row_stride + o * outer_stride + s * segment_stride + i].
struct LeftRows {
  const float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t row_stride = 0;
  std::int64_t outer = 1;
  std::int64_t outer_stride = 0;
  std::int64_t segments = 1;
  std::int64_t segment_stride = 0;
  std::int64_t length = 0;

  std::int64_t k() const noexcept { return outer * segments * length; }
};

struct RightPanels {
  const float* data = nullptr;  ///< panel 0
  std::int64_t n = 0;           ///< columns of the whole matrix
  std::int64_t first = 0;       ///< panels [first, last) are computed
  std::int64_t last = 0;
  std::int64_t first_k = 0;  ///< the row of the panels that meets element 0 of a left row
  std::int64_t k = 0;        ///< rows of a panel; 0: as many as a left row has elements
  bool backward = false;     ///< the last panels come first
  bool cached = false;       ///< in the second-level cache, like the rows: nothing is fetched ahead
};

/// y[m * row_stride + n] = activation(row m times column n + bias[n]).
struct Result {
  float* data = nullptr;
  std::int64_t row_stride = 0;
  const float* bias = nullptr;  ///< n values; null means zero
  Activation activation{};
  bool resumes = false;  ///< the chain goes on from what y holds, instead of the bias
  bool ends = true;      ///< false: a call that resumes follows; no activation yet
};

/// Computes columns of the panels [b.first, b.last) for all rows of a.
void multiply(const LeftRows& a, const RightPanels& b, const Result& y);

/// Rows that `multiply` works on at once on this machine: calls with multiples of it waste nothing.
std::int64_t tile_rows();

/// No machine has a larger tile_rows(), though it may multiply a few rows more at once where there are many: bounds
/// scratch independently of the host.
inline constexpr std::int64_t kMaxTileRows = 12;

}  // namespace bantam::ops::gemm
