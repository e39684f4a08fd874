// accumulate_i8 in plain C++; see dot_i8.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/common/unrolled.h"

namespace bantam::ops {

template <int P, int O>
inline void accumulate_i8(const std::int8_t* const (&x)[P], std::int32_t zero_point, const std::int8_t* const (&w)[O],
                          std::ptrdiff_t n, std::uint32_t (&sums)[P][O]) noexcept {
  for (std::ptrdiff_t i = 0; i < n; ++i)
    unrolled<P>([&](auto p) {
      const std::int32_t left = x[p][i] - zero_point;
      unrolled<O>([&](auto o) { sums[p][o] += static_cast<std::uint32_t>(left * w[o][i]); });
    });
}

}  // namespace bantam::ops
