// Bytes of a line (line.h) with AVX2, in a half to a third of the time that it takes to look them up. Included by
// lookup8_simd.cpp inside Highway's per-target compilation.
#if defined(BANTAM_OPS_LOOKUP8_LINE_AVX2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_LOOKUP8_LINE_AVX2_INL_H_
#undef BANTAM_OPS_LOOKUP8_LINE_AVX2_INL_H_
#else
#define BANTAM_OPS_LOOKUP8_LINE_AVX2_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/elementwise/lookup8/line.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86

/// Computes bytes of a line. kWhole: the whole part of its slope.
template <int kWhole>
class LineVector {
 public:
  static constexpr int kBytes = 32;

  HWY_INLINE explicit LineVector(const Line& line)
      : x_flip_(all(line.x_flip)),
        origin_(all(line.origin)),
        slope_(_mm256_set1_epi16(static_cast<std::int16_t>(line.slope))),
        offset_(_mm256_set1_epi16(static_cast<std::int16_t>(line.offset))),
        maximum_(all(line.maximum)),
        y_flip_(all(line.y_flip)) {}

  HWY_INLINE __m256i operator()(__m256i bytes) const {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i x = _mm256_subs_epu8(_mm256_xor_si256(bytes, x_flip_), origin_);
    // What unpacking puts into other places within lanes, packing puts back.
    const __m256i y = _mm256_packus_epi16(number(_mm256_unpacklo_epi8(zero, x)), number(_mm256_unpackhi_epi8(zero, x)));
    return _mm256_xor_si256(_mm256_min_epu8(y, maximum_), y_flip_);
  }

  static HWY_INLINE __m256i load(const std::uint8_t* x) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(x));
  }
  static HWY_INLINE void store(__m256i v, std::uint8_t* y) { _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(y), v); }

 private:
  static HWY_INLINE __m256i all(std::uint8_t byte) { return _mm256_set1_epi8(static_cast<char>(byte)); }

  /// Of 256 times x. Heights beyond 65535 are limited to it, as are y then.
  HWY_INLINE __m256i number(__m256i x) const {
    __m256i height = _mm256_mulhi_epu16(x, slope_);
    for (int i = 0; i < kWhole; ++i) height = _mm256_adds_epu16(height, x);
    return _mm256_srli_epi16(_mm256_adds_epu16(height, offset_), 8);
  }

  __m256i x_flip_;
  __m256i origin_;
  __m256i slope_;
  __m256i offset_;
  __m256i maximum_;
  __m256i y_flip_;
};

#endif

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
