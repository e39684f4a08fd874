// The innermost loop of gemm_i8.h with AVX2 for the largest tiles of numbers of 16 bits, in assembly: it needs all 16
// registers, of which gcc would keep some in memory. Included by gemm_i8_tiles-inl.h inside Highway's per-target
// compilation.
#if defined(BANTAM_OPS_LARGE_TILE_AVX2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_LARGE_TILE_AVX2_INL_H_
#undef BANTAM_OPS_LARGE_TILE_AVX2_INL_H_
#else
#define BANTAM_OPS_LARGE_TILE_AVX2_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86

// Text of instructions, which no template can make: a row's pair of numbers times two vectors of weights. Both products
// come before both additions: in another order processors find fewer pipes for them.
#define BANTAM_ADD_PAIR(pair, first, second)  \
  "vpbroadcastd " pair                        \
  ", %[x]\n\t"                                \
  "vpmaddwd %[w0], %[x], %[product]\n\t"      \
  "vpmaddwd %[w1], %[x], %[x]\n\t"            \
  "vpaddd %[product], %[" first "], %[" first \
  "]\n\t"                                     \
  "vpaddd %[x], %[" second "], %[" second "]\n\t"
#define BANTAM_ADD_PAIRS(offset)                             \
  BANTAM_ADD_PAIR(offset "(%[a])", "s00", "s01")             \
  BANTAM_ADD_PAIR(offset "(%[a],%[stride])", "s10", "s11")   \
  BANTAM_ADD_PAIR(offset "(%[a],%[stride],2)", "s20", "s21") \
  BANTAM_ADD_PAIR(offset "(%[b])", "s30", "s31")             \
  BANTAM_ADD_PAIR(offset "(%[b],%[stride])", "s40", "s41")   \
  BANTAM_ADD_PAIR(offset "(%[b],%[stride],2)", "s50", "s51")
#define BANTAM_BEGIN(first, second) "vmovdqa %[s00], %[" first "]\n\tvmovdqa %[s01], %[" second "]\n\t"
#define BANTAM_LOAD_WEIGHTS "vmovdqu (%[panel]), %[w0]\n\tvmovdqu 32(%[panel]), %[w1]\n\t"

/// Sums of five or six rows and two vectors of columns over `quads` quads, at least one: as sum_numbers, with weights
/// from `panel` on, and rows that lie `row_stride` numbers apart; all rows begin with the 16 numbers at `start`. Of
/// five rows the third is summed twice.
template <int kTileRows, class V>
HWY_INLINE void sum_large_tile(const std::int16_t* a, std::int64_t row_stride, const std::int8_t* panel,
                               std::int64_t quads, const std::int32_t* start, V (&sum)[kTileRows][2]) {
  static_assert(kTileRows == 5 || kTileRows == 6);
  const std::int16_t* b = a + (kTileRows - 3) * row_stride;
  __m256i s[6][2];
  __m256i x, product, w0, w1;
  asm("vmovdqu (%[start]), %[s00]\n\t"
      "vmovdqu 32(%[start]), %[s01]\n\t"
      BANTAM_BEGIN("s10", "s11") BANTAM_BEGIN("s20", "s21") BANTAM_BEGIN("s30", "s31")
      BANTAM_BEGIN("s40", "s41") BANTAM_BEGIN("s50", "s51")
      "1:\n\t"
      // Even bytes as numbers of 16 bits, then odd ones.
      BANTAM_LOAD_WEIGHTS
      "vpsllw $8, %[w0], %[w0]\n\t"
      "vpsllw $8, %[w1], %[w1]\n\t"
      "vpsraw $8, %[w0], %[w0]\n\t"
      "vpsraw $8, %[w1], %[w1]\n\t"
      BANTAM_ADD_PAIRS("0")
      BANTAM_LOAD_WEIGHTS
      "vpsraw $8, %[w0], %[w0]\n\t"
      "vpsraw $8, %[w1], %[w1]\n\t"
      BANTAM_ADD_PAIRS("4")
      "add $64, %[panel]\n\t"
      "add $8, %[a]\n\t"
      "add $8, %[b]\n\t"
      "dec %[quads]\n\t"
      "jnz 1b"
      : [s00] "=&x"(s[0][0]), [s01] "=&x"(s[0][1]), [s10] "=&x"(s[1][0]), [s11] "=&x"(s[1][1]),
        [s20] "=&x"(s[2][0]), [s21] "=&x"(s[2][1]), [s30] "=&x"(s[3][0]), [s31] "=&x"(s[3][1]),
        [s40] "=&x"(s[4][0]), [s41] "=&x"(s[4][1]), [s50] "=&x"(s[5][0]), [s51] "=&x"(s[5][1]), [x] "=&x"(x),
        [product] "=&x"(product), [w0] "=&x"(w0), [w1] "=&x"(w1), [a] "+r"(a), [b] "+r"(b), [panel] "+r"(panel),
        [quads] "+r"(quads)
      : [stride] "r"(2 * row_stride), [start] "r"(start)
      : "cc", "memory");
  for (int r = 0; r < kTileRows; ++r)
    for (int v = 0; v < 2; ++v) sum[r][v] = V{s[r < 3 ? r : r + 6 - kTileRows][v]};
}

#undef BANTAM_LOAD_WEIGHTS
#undef BANTAM_BEGIN
#undef BANTAM_ADD_PAIRS
#undef BANTAM_ADD_PAIR

#endif

}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
