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
// The numbers of two vectors of columns at that place behind `panel`.
#define BANTAM_LOAD(first, second) "vmovdqu " first "(%[panel]), %[w0]\n\tvmovdqu " second "(%[panel]), %[w1]\n\t"
// A line of what comes next.
#define BANTAM_FETCH "prefetcht1 (%[ahead])\n\tadd %[ahead_step], %[ahead]\n\t"
#define BANTAM_SHIFT(how) how " $8, %[w0], %[w0]\n\t" how " $8, %[w1], %[w1]\n\t"
// The whole loop. `even` and `odd` load the weights of the first and third number of quads, and of the others; `step`:
// bytes from one quad to the next.
#define BANTAM_SUM_LARGE_TILE(even, odd, step)                                                                        \
  asm("vmovdqu (%[start]), %[s00]\n\t"                                                                                \
      "vmovdqu 32(%[start]), %[s01]\n\t" BANTAM_BEGIN("s10", "s11") BANTAM_BEGIN("s20", "s21") BANTAM_BEGIN(          \
          "s30", "s31") BANTAM_BEGIN("s40", "s41") BANTAM_BEGIN("s50", "s51") "1:\n\t" even BANTAM_ADD_PAIRS("0")     \
          odd BANTAM_ADD_PAIRS("4") "add $" step                                                                      \
                                    ", %[panel]\n\t"                                                                  \
                                    "add $8, %[a]\n\t"                                                                \
                                    "add $8, %[b]\n\t"                                                                \
                                    "dec %[quads]\n\t"                                                                \
                                    "jnz 1b"                                                                          \
      : [s00] "=&x"(s[0][0]), [s01] "=&x"(s[0][1]), [s10] "=&x"(s[1][0]), [s11] "=&x"(s[1][1]), [s20] "=&x"(s[2][0]), \
        [s21] "=&x"(s[2][1]), [s30] "=&x"(s[3][0]), [s31] "=&x"(s[3][1]), [s40] "=&x"(s[4][0]), [s41] "=&x"(s[4][1]), \
        [s50] "=&x"(s[5][0]), [s51] "=&x"(s[5][1]), [x] "=&x"(x), [product] "=&x"(product), [w0] "=&x"(w0),           \
        [w1] "=&x"(w1), [a] "+r"(a), [b] "+r"(b), [panel] "+r"(panel), [quads] "+r"(quads), [ahead] "+r"(ahead.data)  \
      : [stride] "r"(2 * row_stride), [start] "r"(start), [ahead_step] "r"(ahead.bytes)                               \
      : "cc", "memory")

/// A panel's quads as numbers of 16 bits, as its tiles take them: several tiles do not widen them each.
class WidePanel {
 public:
  /// Does it pay for so many tiles? Their quads fit.
  static constexpr bool pays(std::int64_t tiles, std::int64_t quads) { return tiles >= 8 && quads <= kMostQuads; }

  HWY_INLINE WidePanel(const std::int8_t* panel, std::int64_t quads) {
    std::int16_t* to = numbers_;
    for (std::int64_t quad = 0; quad < quads; ++quad, panel += 64, to += kQuadNumbers)
      for (int v = 0; v < 2; ++v) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(panel + 32 * v));
        const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8);
        _mm256_store_si256(reinterpret_cast<__m256i*>(to + 16 * v), even);
        _mm256_store_si256(reinterpret_cast<__m256i*>(to + 32 + 16 * v), _mm256_srai_epi16(bytes, 8));
      }
  }

  const std::int16_t* numbers() const { return numbers_; }

 private:
  static constexpr std::int64_t kMostQuads = 224;
  static constexpr std::int64_t kQuadNumbers = 64;
  alignas(32) std::int16_t numbers_[kMostQuads * kQuadNumbers];
};

/// What a tile fetches while it computes: a line for each quad, or two, each so many bytes behind the one before.
struct Ahead {
  const std::int8_t* data = nullptr;
  std::int64_t bytes = 0;
};

/// Sums of five or six rows and two vectors of columns over `quads` quads, at least one: as sum_numbers, with weights
/// from `panel` on, those of a WidePanel or bytes, and rows that lie `row_stride` numbers apart; all rows begin with
/// the 16 numbers at `start`. Of five rows the third is summed twice.
template <int kTileRows, bool kFetchesTwice = false, typename Weight, class V>
HWY_INLINE void sum_large_tile(const std::int16_t* a, std::int64_t row_stride, const Weight* panel, std::int64_t quads,
                               const std::int32_t* start, V (&sum)[kTileRows][2], Ahead ahead) {
  static_assert(kTileRows == 5 || kTileRows == 6);
  const std::int16_t* b = a + (kTileRows - 3) * row_stride;
  __m256i s[6][2];
  __m256i x, product, w0, w1;
  if constexpr (kFetchesTwice) {
    static_assert(sizeof(Weight) == 2);
    BANTAM_SUM_LARGE_TILE(BANTAM_FETCH BANTAM_LOAD("", "32"), BANTAM_FETCH BANTAM_LOAD("64", "96"), "128");
  } else if constexpr (sizeof(Weight) == 2) {
    BANTAM_SUM_LARGE_TILE(BANTAM_FETCH BANTAM_LOAD("", "32"), BANTAM_LOAD("64", "96"), "128");
  } else {
    BANTAM_SUM_LARGE_TILE(BANTAM_FETCH BANTAM_LOAD("", "32") BANTAM_SHIFT("vpsllw") BANTAM_SHIFT("vpsraw"),
                          BANTAM_LOAD("", "32") BANTAM_SHIFT("vpsraw"), "64");
  }
  for (int r = 0; r < kTileRows; ++r)
    for (int v = 0; v < 2; ++v) sum[r][v] = V{s[r < 3 ? r : r + 6 - kTileRows][v]};
}

#undef BANTAM_SUM_LARGE_TILE
#undef BANTAM_SHIFT
#undef BANTAM_FETCH
#undef BANTAM_LOAD
#undef BANTAM_BEGIN
#undef BANTAM_ADD_PAIRS
#undef BANTAM_ADD_PAIR

#endif

}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
