#include "ops/nn/gemm/gemm_i8.h"

#include <cstring>

namespace bantam::ops::gemm {
namespace {

/// Columns [first, first + kPanel), of which those from n on are zero.
void pack_panel(const std::int8_t* b, std::int64_t k, std::int64_t n, std::int64_t k_stride, std::int64_t n_stride,
                std::uint8_t flip, std::int64_t first, std::int8_t* packed) noexcept {
  std::uint32_t sums[kPanel] = {};
  std::memset(packed, 0, static_cast<std::size_t>(panel_bytes(k)));
  for (std::int64_t i = 0; i < kPanel && first + i < n; ++i) {
    const std::int8_t* column = b + (first + i) * n_stride;
    for (std::int64_t row = 0; row < k; ++row) {
      const auto value = static_cast<std::int8_t>(static_cast<std::uint8_t>(column[row * k_stride]) ^ flip);
      packed[(row / 4 * kPanel + i) * 4 + row % 4] = value;
      sums[i] += static_cast<std::uint32_t>(std::int32_t{value});
    }
  }
  std::memcpy(packed + quad_count(k) * 4 * kPanel, sums, sizeof sums);
}

}  // namespace

void pack_panels_i8(const std::int8_t* b, std::int64_t k, std::int64_t n, std::int64_t k_stride, std::int64_t n_stride,
                    std::uint8_t flip, std::int8_t* packed) noexcept {
  for (std::int64_t panel = 0; panel < panel_count(n); ++panel)
    pack_panel(b, k, n, k_stride, n_stride, flip, panel * kPanel, packed + panel * panel_bytes(k));
}

}  // namespace bantam::ops::gemm
