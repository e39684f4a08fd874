// The end of int8 kernels for small cores: a block of accumulators becomes results. Freestanding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/common/linear_form.h"
#include "ops/common/unrolled.h"

namespace bantam::ops {

/// y[p * stride + o] = the result for sums[p][o] of channel `channel` + o. Everything is read before anything is
/// written, so that what the rows have in common is loaded once.
template <int P, int O>
inline void finish_i8(const std::uint32_t (&sums)[P][O], const Requantizer& requantizer, std::int32_t channel,
                      std::int8_t* y, std::ptrdiff_t stride) noexcept {
  const Requantizer requantize = requantizer;
  std::int8_t results[P][O];
  unrolled<O>([&](auto o) { unrolled<P>([&](auto p) { results[p][o] = requantize(sums[p][o], channel + o); }); });
  unrolled<P>([&](auto p) { unrolled<O>([&](auto o) { y[p * stride + o] = results[p][o]; }); });
}

}  // namespace bantam::ops
