#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::gemm {

void pack_panels(const float* b, std::int64_t k, std::int64_t n, std::int64_t k_stride, std::int64_t n_stride,
                 std::int64_t first, std::int64_t last, float* packed) noexcept {
  for (std::int64_t panel = first; panel < last; ++panel) {
    float* out = packed + panel * k * kPanel;
    for (std::int64_t row = 0; row < k; ++row)
      for (std::int64_t column = panel * kPanel; column < (panel + 1) * kPanel; ++column)
        *out++ = column < n ? b[row * k_stride + column * n_stride] : 0.0F;
  }
}

}  // namespace bantam::ops::gemm
