// Tables that are a line, rounded and limited, as those are that change a scale: with AVX2 such bytes are computed in
// a half to a third of the time that it takes to look them up. Whether a table is one is found out from its entries,
// which it then gives to the bit. Included by lookup8_simd.cpp inside Highway's per-target compilation.
#if defined(BANTAM_OPS_LOOKUP8_LINE_AVX2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_LOOKUP8_LINE_AVX2_INL_H_
#undef BANTAM_OPS_LOOKUP8_LINE_AVX2_INL_H_
#else
#define BANTAM_OPS_LOOKUP8_LINE_AVX2_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86

/// y = min(floor((floor(slope * x / 256) + offset) / 256), maximum), with x counted from where y begins to rise, and
/// 8 bits of fraction. Bytes count as unsigned after their flips, which make signed ones so.
struct Line {
  static constexpr std::int32_t kOne = 65536;
  static constexpr std::int32_t kSlopes = 3;

  std::uint8_t x_flip = 0;
  std::uint8_t y_flip = 0;
  std::uint8_t origin = 0;   ///< the last x of the least y
  std::uint8_t maximum = 0;  ///< of y
  std::int32_t slope = 0;    ///< y per x times kOne, below kSlopes * kOne
  std::int32_t offset = 0;   ///< in [0, 65535]
};

/// The entries of a table whose numbers rise.
class RisingTable {
 public:
  /// The flips as of Line.
  HWY_INLINE RisingTable(const std::uint8_t* table, std::uint8_t x_flip, std::uint8_t y_flip) {
    const __m256i flips = _mm256_set1_epi8(static_cast<char>(y_flip));
    for (int x = 0; x < kCount; x += 32) {
      const auto* from = reinterpret_cast<const __m256i_u*>(table + (x ^ x_flip));
      _mm256_store_si256(reinterpret_cast<__m256i*>(numbers_ + x), _mm256_xor_si256(_mm256_loadu_si256(from), flips));
    }
    line_ = {.x_flip = x_flip, .y_flip = y_flip, .maximum = numbers_[kCount - 1]};
    while (rises() < kCount && numbers_[rises()] == minimum()) ++line_.origin;
    last_ = kCount - 1;
    while (last_ > rises() && numbers_[last_] == line_.maximum) --last_;
  }

  /// Finds the line that gives all entries; false if there is none or none is found. Halves the range of slopes: of all
  /// offsets that a slope leaves, the least is set by one entry and the largest by another, which say whether steeper
  /// lines or flatter ones leave more.
  bool find_line(Line& line) {
    constexpr int kShortest = 8;
    const int run = last_ - rises();
    if (run < kShortest) return false;
    const int rise = numbers_[last_] - numbers_[rises()];
    const int middle = numbers_[rises() + run / 2] - numbers_[rises()];
    if (std::abs(2 * middle * run - rise * (run / 2 * 2)) > 4 * run) return false;
    std::int32_t flattest = std::max((rise * Line::kOne - Line::kOne * 3 / 2) / run, 0);
    std::int32_t steepest = std::min((rise * Line::kOne + Line::kOne * 3 / 2) / run, Line::kSlopes * Line::kOne - 1);
    while (flattest <= steepest) {
      line_.slope = (flattest + steepest) / 2;
      const Offsets offsets = offsets_of(line_.slope);
      if (offsets.least <= offsets.largest) {
        line_.offset = (offsets.least + offsets.largest) / 2;
        line = line_;
        return true;
      }
      // What is left is about a concave function of the slope: no other leaves more than its tangent at the range's
      // end.
      const int steeper = offsets.at_least - offsets.at_largest;
      constexpr int kRounding = 2;
      const int most = std::abs(steeper) * ((steepest - flattest) / 2 + 1) / 256 + kRounding;
      if (offsets.largest - offsets.least + most < 0) return false;
      if (steeper > 0) {
        flattest = line_.slope + 1;
      } else {
        steepest = line_.slope - 1;
      }
    }
    return false;
  }

 private:
  static constexpr int kCount = 256;

  struct Offsets {
    int least, largest;        ///< that a slope leaves
    int at_least, at_largest;  ///< the entries that say so
  };

  int minimum() const { return numbers_[0]; }
  /// The first entry that is larger.
  int rises() const { return line_.origin + 1; }

  Offsets offsets_of(std::int32_t slope) const {
    const __m256i minimum_of_y = _mm256_set1_epi32(minimum());
    const __m256i maximum_of_y = _mm256_set1_epi32(line_.maximum);
    const __m256i slopes = _mm256_set1_epi32(slope);
    __m256i least = _mm256_set1_epi32(256 * minimum());
    __m256i largest = _mm256_set1_epi32(65535);
    __m256i at_least = _mm256_setzero_si256();
    __m256i at_largest = _mm256_setzero_si256();
    __m256i x = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(-line_.origin));
    for (int i = 0; i < kCount; i += kLanes, x = _mm256_add_epi32(x, _mm256_set1_epi32(kLanes))) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(numbers_ + i));
      const __m256i y = _mm256_cvtepu8_epi32(bytes);
      const __m256i counted = _mm256_max_epi32(x, _mm256_setzero_si256());
      const __m256i height = _mm256_srli_epi32(_mm256_mullo_epi32(counted, slopes), 8);
      const __m256i lower = _mm256_sub_epi32(_mm256_slli_epi32(y, 8), height);
      const __m256i upper = _mm256_add_epi32(lower, _mm256_set1_epi32(255));
      // Of the least numbers any offset is large enough, of the largest ones small enough.
      const __m256i sets_least =
          _mm256_and_si256(_mm256_cmpgt_epi32(y, minimum_of_y), _mm256_cmpgt_epi32(lower, least));
      const __m256i sets_largest =
          _mm256_and_si256(_mm256_cmpgt_epi32(maximum_of_y, y), _mm256_cmpgt_epi32(largest, upper));
      least = _mm256_blendv_epi8(least, lower, sets_least);
      at_least = _mm256_blendv_epi8(at_least, x, sets_least);
      largest = _mm256_blendv_epi8(largest, upper, sets_largest);
      at_largest = _mm256_blendv_epi8(at_largest, x, sets_largest);
    }
    alignas(32) std::int32_t numbers[4][kLanes];
    const __m256i all[4] = {least, at_least, largest, at_largest};
    for (int i = 0; i < 4; ++i) _mm256_store_si256(reinterpret_cast<__m256i*>(numbers[i]), all[i]);
    const auto i = std::max_element(numbers[0], numbers[0] + kLanes) - numbers[0];
    const auto j = std::min_element(numbers[2], numbers[2] + kLanes) - numbers[2];
    return {numbers[0][i], numbers[2][j], numbers[1][i], numbers[3][j]};
  }

  static constexpr int kLanes = 8;
  alignas(32) std::uint8_t numbers_[kCount];
  Line line_;
  int last_;  ///< the last entry below the maximum
};

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
