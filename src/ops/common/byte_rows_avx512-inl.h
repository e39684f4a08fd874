// The last steps of 8-bit results with AVX-512: zero point, limits and the order of bytes for 64 numbers at a time.
// Included by *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_BYTE_ROWS_AVX512_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_BYTE_ROWS_AVX512_INL_H_
#undef BANTAM_OPS_BYTE_ROWS_AVX512_INL_H_
#else
#define BANTAM_OPS_BYTE_ROWS_AVX512_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86

/// 64 numbers as bytes. Numbers come without zero point and limits; those beyond 16 bits need only lie on their side.
/// Limits are those of int8 or within; the bits of `flip` are inverted in the end.
class BytePacker {
 public:
  HWY_INLINE BytePacker(std::int32_t zero_point, std::int32_t minimum, std::int32_t maximum, std::uint8_t flip)
      : is_plain_(zero_point == -128 && minimum == -128 && maximum == 127 && flip == 0x80),
        zero_point_(_mm512_set1_epi16(static_cast<std::int16_t>(zero_point))),
        minimum_(_mm512_set1_epi8(static_cast<char>(minimum))),
        maximum_(_mm512_set1_epi8(static_cast<char>(maximum))),
        flip_(_mm512_set1_epi8(static_cast<char>(flip))) {}

  /// Are results all numbers of uint8, without a zero point? Then packing limits them.
  bool is_plain() const { return is_plain_; }

  /// Each quarter has four numbers of a, then four of b, c and d. kPlain: what is_plain() says, or false.
  template <bool kPlain = false>
  HWY_INLINE __m512i operator()(__m512i a, __m512i b, __m512i c, __m512i d) const {
    return bytes<kPlain>(halves<kPlain>(a, b), halves<kPlain>(c, d));
  }

  /// The same in two steps, for numbers that are not there all at once: of two pairs, and of both.
  template <bool kPlain>
  HWY_INLINE __m512i halves(__m512i a, __m512i b) const {
    const __m512i packed = _mm512_packs_epi32(a, b);
    return kPlain ? packed : _mm512_adds_epi16(packed, zero_point_);
  }
  template <bool kPlain>
  HWY_INLINE __m512i bytes(__m512i ab, __m512i cd) const {
    if constexpr (kPlain) return _mm512_packus_epi16(ab, cd);
    const __m512i limited = _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(ab, cd), minimum_), maximum_);
    return _mm512_xor_si512(limited, flip_);
  }

 private:
  bool is_plain_;
  __m512i zero_point_;
  __m512i minimum_;
  __m512i maximum_;
  __m512i flip_;
};

/// Rows of up to 64 results.
class ByteRows {
 public:
  /// Of each row the first `columns` results are stored, 1 to 64. The others: see BytePacker.
  HWY_INLINE ByteRows(std::int32_t zero_point, std::int32_t minimum, std::int32_t maximum, std::uint8_t flip,
                      std::int64_t columns)
      : pack_(zero_point, minimum, maximum, flip), stored_(~std::uint64_t{0} >> (64 - columns)) {}

  bool is_plain() const { return pack_.is_plain(); }

  /// Four vectors of a row. kPlain, here and below: what is_plain() says, or false.
  template <bool kPlain = false, class V>
  HWY_INLINE void store(V a, V b, V c, V d, std::uint8_t* to) const {
    _mm512_mask_storeu_epi8(to, stored_, in_order<kPlain>(a.raw, b.raw, c.raw, d.raw));
  }

  /// Two vectors of a row, two of another.
  template <bool kPlain = false, class V>
  HWY_INLINE void store(V a_low, V a_high, V b_low, V b_high, std::uint8_t* a, std::uint8_t* b) const {
    const __m512i bytes = in_order<kPlain>(a_low.raw, a_high.raw, b_low.raw, b_high.raw);
    const auto stored = static_cast<__mmask32>(stored_);
    _mm256_mask_storeu_epi8(a, stored, _mm512_castsi512_si256(bytes));
    _mm256_mask_storeu_epi8(b, stored, _mm512_extracti64x4_epi64(bytes, 1));
  }

  /// Four rows of at most 16 results, each `stride` bytes behind the one before. kWhole: of 16.
  template <bool kPlain = false, bool kWhole = false, class V>
  HWY_INLINE void store_halves(V a, V b, V c, V d, std::uint8_t* to, std::int64_t stride) const {
    store_halves<kPlain, kWhole>(a, b, c, d, to, to + 2 * stride, stride);
  }
  /// The same of two pairs of rows.
  template <bool kPlain = false, bool kWhole = false, class V>
  HWY_INLINE void store_halves(V a, V b, V c, V d, std::uint8_t* ab, std::uint8_t* cd, std::int64_t stride) const {
    const __m512i bytes = in_order<kPlain>(a.raw, b.raw, c.raw, d.raw);
    store_quarter<kWhole, 0>(bytes, ab);
    store_quarter<kWhole, 1>(bytes, ab + stride);
    store_quarter<kWhole, 2>(bytes, cd);
    store_quarter<kWhole, 3>(bytes, cd + stride);
  }

 private:
  template <bool kWhole, int kQuarter>
  HWY_INLINE void store_quarter(__m512i bytes, std::uint8_t* to) const {
    const __m128i quarter = _mm512_extracti32x4_epi32(bytes, kQuarter);
    if constexpr (kWhole) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), quarter);
    } else {
      _mm_mask_storeu_epi8(to, static_cast<__mmask16>(stored_), quarter);
    }
  }

  /// The bytes of a, then those of b, c and d.
  template <bool kPlain>
  HWY_INLINE __m512i in_order(__m512i a, __m512i b, __m512i c, __m512i d) const {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, pack_.template operator()<kPlain>(a, b, c, d));
  }

  BytePacker pack_;
  __mmask64 stored_;
};

#endif

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
