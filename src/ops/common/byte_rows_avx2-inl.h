// The last steps of 8-bit results with AVX2: zero point, limits and the order of bytes for 32 numbers at a time.
// Included by *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_BYTE_ROWS_AVX2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_BYTE_ROWS_AVX2_INL_H_
#undef BANTAM_OPS_BYTE_ROWS_AVX2_INL_H_
#else
#define BANTAM_OPS_BYTE_ROWS_AVX2_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86

/// Two rows of sixteen results. Numbers come without zero point and limits; those beyond 16 bits need only lie on their
/// side. Limits are those of int8 or within; the bits of `flip` are inverted in the end.
class ByteRows {
 public:
  HWY_INLINE ByteRows(std::int32_t zero_point, std::int32_t minimum, std::int32_t maximum, std::uint8_t flip)
      : is_plain_(zero_point == -128 && minimum == -128 && maximum == 127 && flip == 0x80),
        zero_point_(_mm256_set1_epi16(static_cast<std::int16_t>(zero_point))),
        minimum_(_mm256_set1_epi8(static_cast<char>(minimum))),
        maximum_(_mm256_set1_epi8(static_cast<char>(maximum))),
        flip_(_mm256_set1_epi8(static_cast<char>(flip))) {}

  /// Are results all numbers of uint8, without a zero point? Then packing limits them.
  bool is_plain() const { return is_plain_; }

  /// Two vectors of a row, two of another. kPlain, here and below: what is_plain() says, or false.
  template <bool kPlain = false, class V>
  HWY_INLINE void store(V a_low, V a_high, V b_low, V b_high, std::uint8_t* a, std::uint8_t* b) const {
    // Packing leaves the lower and upper halves of vectors apart.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    store_both(_mm256_permutevar8x32_epi32(pack<kPlain>(a_low.raw, a_high.raw, b_low.raw, b_high.raw), order), a, b);
  }

  /// Two rows of which the vectors hold numbers 0 to 3 in their lanes, 4 to 7, and so on.
  template <bool kPlain = false, class V>
  HWY_INLINE void store_lanes(const V (&rows)[4], std::uint8_t* a, std::uint8_t* b) const {
    store_both(pack<kPlain>(rows[0].raw, rows[1].raw, rows[2].raw, rows[3].raw), a, b);
  }

  /// Four rows of eight results, each `stride` bytes behind the one before.
  template <bool kPlain = false, class V>
  HWY_INLINE void store_halves(V a, V b, V c, V d, std::uint8_t* to, std::int64_t stride) const {
    store_halves<kPlain>(a, b, c, d, to, to + 2 * stride, stride);
  }
  /// The same of two pairs of rows.
  template <bool kPlain = false, class V>
  HWY_INLINE void store_halves(V a, V b, V c, V d, std::uint8_t* ab, std::uint8_t* cd, std::int64_t stride) const {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = _mm256_permutevar8x32_epi32(pack<kPlain>(a.raw, b.raw, c.raw, d.raw), order);
    const __m128i first = _mm256_castsi256_si128(bytes);
    const __m128i second = _mm256_extracti128_si256(bytes, 1);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(ab), first);
    _mm_storeh_pd(reinterpret_cast<double*>(ab + stride), _mm_castsi128_pd(first));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(cd), second);
    _mm_storeh_pd(reinterpret_cast<double*>(cd + stride), _mm_castsi128_pd(second));
  }

 private:
  template <bool kPlain>
  HWY_INLINE __m256i pack(__m256i a_low, __m256i a_high, __m256i b_low, __m256i b_high) const {
    if constexpr (kPlain)
      return _mm256_packus_epi16(_mm256_packs_epi32(a_low, a_high), _mm256_packs_epi32(b_low, b_high));
    const __m256i a = _mm256_adds_epi16(_mm256_packs_epi32(a_low, a_high), zero_point_);
    const __m256i b = _mm256_adds_epi16(_mm256_packs_epi32(b_low, b_high), zero_point_);
    const __m256i bytes = _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(a, b), minimum_), maximum_);
    return _mm256_xor_si256(bytes, flip_);
  }

  static HWY_INLINE void store_both(__m256i bytes, std::uint8_t* a, std::uint8_t* b) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(a), _mm256_castsi256_si128(bytes));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(b), _mm256_extracti128_si256(bytes, 1));
  }

  bool is_plain_;
  __m256i zero_point_;
  __m256i minimum_;
  __m256i maximum_;
  __m256i flip_;
};

#endif

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
