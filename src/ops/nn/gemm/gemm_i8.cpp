#include "ops/nn/gemm/gemm_i8.h"

namespace bantam::ops::gemm {

void pack_panels_i8(const std::int8_t* b, std::int64_t k, std::int64_t n, std::int64_t k_stride, std::int64_t n_stride,
                    std::uint8_t flip, std::int8_t* packed) noexcept {
  pack_panels_of(
      k, n,
      [=](std::int64_t row, std::int64_t column) {
        return static_cast<std::int8_t>(static_cast<std::uint8_t>(b[row * k_stride + column * n_stride]) ^ flip);
      },
      packed);
}

}  // namespace bantam::ops::gemm
