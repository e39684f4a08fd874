// accumulate_i8 with the vectors of Armv8.1-M (MVE): sixteen products per instruction, the zero point by way of the sum
// of the weights. See dot_i8.h.
#pragma once

#include <arm_mve.h>

#include <cstddef>
#include <cstdint>

#include "ops/common/unrolled.h"

namespace bantam::ops {

template <int P, int O>
inline void accumulate_i8(const std::int8_t* const (&x)[P], std::int32_t zero_point, const std::int8_t* const (&w)[O],
                          std::ptrdiff_t n, std::uint32_t (&sums)[P][O]) noexcept {
  constexpr std::ptrdiff_t kLanes = 16;
  std::int32_t products[P][O] = {};
  std::int32_t weights[O] = {};
  for (std::ptrdiff_t i = 0; i < n; i += kLanes) {
    const mve_pred16_t inside = vctp8q(static_cast<std::uint32_t>(n - i));
    int8x16_t left[P];
    unrolled<P>([&](auto p) { left[p] = vldrbq_z_s8(x[p] + i, inside); });
    unrolled<O>([&](auto o) {
      const int8x16_t right = vldrbq_z_s8(w[o] + i, inside);  // lanes outside are zero
      weights[o] = vaddvaq_s8(weights[o], right);
      unrolled<P>([&](auto p) { products[p][o] = vmladavaq_s8(products[p][o], left[p], right); });
    });
  }
  unrolled<P>([&](auto p) {
    unrolled<O>([&](auto o) {
      sums[p][o] += static_cast<std::uint32_t>(products[p][o]) -
                    static_cast<std::uint32_t>(zero_point) * static_cast<std::uint32_t>(weights[o]);
    });
  });
}

}  // namespace bantam::ops
