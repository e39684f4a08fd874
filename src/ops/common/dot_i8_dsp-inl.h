// accumulate_i8 with the DSP instructions of Armv7E-M: four elements become two pairs of halfwords, and one instruction
// multiplies and adds a pair. See dot_i8.h.
#pragma once

#include <arm_acle.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/common/unrolled.h"

namespace bantam::ops {

/// Four int8 elements as two pairs of int16: elements 0 and 2, 1 and 3.
struct HalfwordPairs {
  int16x2_t even;
  int16x2_t odd;
};

inline std::uint32_t load_word(const std::int8_t* from) noexcept {
  std::uint32_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

/// Four elements from any address.
inline HalfwordPairs load_pairs(const std::int8_t* from) noexcept {
  const std::uint32_t word = load_word(from);
  return {__sxtb16(static_cast<int8x4_t>(word)), __sxtb16(static_cast<int8x4_t>(std::rotr(word, 8)))};
}

/// Each plus the halfword of `addend`.
inline HalfwordPairs load_pairs(const std::int8_t* from, int16x2_t addend) noexcept {
  const std::uint32_t word = load_word(from);
  return {__sxtab16(addend, static_cast<int8x4_t>(word)), __sxtab16(addend, static_cast<int8x4_t>(std::rotr(word, 8)))};
}

template <int P, int O>
inline void accumulate_i8(const std::int8_t* const (&x)[P], std::int32_t zero_point, const std::int8_t* const (&w)[O],
                          std::ptrdiff_t n, std::uint32_t (&sums)[P][O]) noexcept {
  const auto minus = static_cast<std::uint32_t>(-zero_point) & 0xffffU;
  const auto addend = static_cast<int16x2_t>(minus << 16 | minus);
  std::int32_t products[P][O] = {};  // apart from `sums`, which may lie in memory
  std::ptrdiff_t i = 0;
  for (; i + 4 <= n; i += 4) {
    HalfwordPairs left[P];
    unrolled<P>([&](auto p) { left[p] = load_pairs(x[p] + i, addend); });
    unrolled<O>([&](auto o) {
      const HalfwordPairs right = load_pairs(w[o] + i);
      unrolled<P>([&](auto p) {
        products[p][o] = __smlad(left[p].odd, right.odd, __smlad(left[p].even, right.even, products[p][o]));
      });
    });
  }
  for (; i < n; ++i)
    unrolled<P>([&](auto p) {
      const std::int32_t left = x[p][i] - zero_point;
      unrolled<O>([&](auto o) {
        products[p][o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(products[p][o]) +
                                                   static_cast<std::uint32_t>(left * w[o][i]));
      });
    });
  unrolled<P>([&](auto p) { unrolled<O>([&](auto o) { sums[p][o] += static_cast<std::uint32_t>(products[p][o]); }); });
}

}  // namespace bantam::ops
