#include "ops/nn/gemm/gemm_i8.h"

namespace bantam::ops::gemm {

void pack_panels_i8(const std::int8_t* b, std::int64_t k, std::int64_t n, std::int64_t k_stride, std::int64_t n_stride,
                    std::int8_t* packed) noexcept {
  for (std::int64_t panel = 0; panel < panel_count(n); ++panel)
    for (std::int64_t pair = 0; pair < pair_count(k); ++pair)
      for (std::int64_t column = panel * kPanel; column < (panel + 1) * kPanel; ++column)
        for (std::int64_t row = 2 * pair; row < 2 * pair + 2; ++row)
          *packed++ = row < k && column < n ? b[row * k_stride + column * n_stride] : std::int8_t{0};
}

}  // namespace bantam::ops::gemm
