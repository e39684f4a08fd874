// The product of matrices of 16-bit integers whose sums are int32 and wrap, for the integer Winograd kernel.
//
// Panel layout (fixed, whatever the host's vectors): the columns of the right matrix [K,N] are cut into panels of 16;
// panel p holds, for k = 0, 2, 4 ..., the 16 pairs (k, k + 1) of columns 16p..16p+15. K is a multiple of 4 and N of 16.
// Freestanding, re-entrant; nothing is allocated.
#pragma once

#include <cstdint>

#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::gemm {

/// Numbers of the packed form of a [k,n] matrix.
constexpr std::int64_t packed_i16_numbers(std::int64_t k, std::int64_t n) noexcept { return k * n; }

/// Where element (k, n) of a matrix of `rows` rows is in its packed form.
constexpr std::int64_t packed_i16_index(std::int64_t rows, std::int64_t k, std::int64_t n) noexcept {
  return (n / kPanel * rows + k / 2 * 2) * kPanel + n % kPanel * 2 + k % 2;
}

/// The left matrix: element k of row m is data[m * row_stride + k].
struct LeftNumbers {
  const std::int16_t* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t row_stride = 0;
};

/// Rows [first, first + count) of all columns of a packed matrix [k,n]; `first` and `count` are multiples of 4, and
/// `count` is positive.
struct RightNumbers {
  const std::int16_t* data = nullptr;
  std::int64_t k = 0;
  std::int64_t n = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// y[m * n + j] = the sum of products of row m, from its first number on, and column j.
void multiply(const LeftNumbers& a, const RightNumbers& b, std::int32_t* y);

}  // namespace bantam::ops::gemm
