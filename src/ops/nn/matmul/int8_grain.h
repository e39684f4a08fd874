// How finely threads cut int8 products of matrices, for matmul and matmul_affine. Freestanding, values only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/matmul/geometry.h"

namespace bantam::ops {

/// Products of int8 numbers that are worth a thread: about ten microseconds of work with plain instructions.
inline constexpr std::int64_t kInt8WorthOfThread = 200'000;

/// How many of those that take so many products each are worth a thread, `fewest` at least. Sums of no products, as of
/// a dimension that turns out to be 0, count as one.
inline std::int64_t int8_grain(std::int64_t products, std::int64_t fewest) noexcept {
  return std::max(kInt8WorthOfThread / std::max<std::int64_t>(products, 1), fewest);
}

/// How many rows one task takes.
inline std::int64_t int8_row_grain(const MatmulGeometry& g) noexcept {
  return int8_grain(std::int64_t{g.k} * g.n, gemm::kMaxTileRows);
}

/// How many panels one task takes, where it takes all rows.
inline std::int64_t int8_panel_grain(const MatmulGeometry& g) noexcept {
  return int8_grain(gemm::kPanel * g.k * std::min<std::int64_t>(gemm::kMaxTileRows, g.m), 4);
}

}  // namespace bantam::ops
