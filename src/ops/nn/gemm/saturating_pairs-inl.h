// Products of bytes where the processor adds two of them in 16 bits and limits the sum (AVX2 without VNNI): half as
// many instructions as with numbers of 16 bits, and exact as long as no sum is limited. Either left bytes count as
// unsigned and weights as signed, or, where the zero point lies in the middle, left bytes count as signed and 128 is
// added to the weights. Whatever the weights are, a sum is not limited if the magnitudes of the two left bytes add up
// to 256, or 128 if signed. Quads of a row that have larger pairs are rare where activations were quantised within what
// they reach: they are taken out, zeros in their place, and multiplied on their own. Included by gemm_i8_simd.cpp
// inside Highway's per-target compilation.
#if defined(BANTAM_OPS_GEMM_SATURATING_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_GEMM_SATURATING_PAIRS_INL_H_
#undef BANTAM_OPS_GEMM_SATURATING_PAIRS_INL_H_
#else
#define BANTAM_OPS_GEMM_SATURATING_PAIRS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/nn/gemm/gemm_i8_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {

/// A quad that was taken out of its row.
struct LargeQuad {
  std::int32_t quad = 0;
  std::uint8_t bytes[4] = {};
};

/// Rows of bytes that are ready for products in pairs.
struct PairRows {
  bool is_signed = false;
  const LargeQuad* large = nullptr;
  std::int32_t first_large[kMaxBlockRows + 1];  ///< row r has large[first_large[r]] up to large[first_large[r + 1]]
  std::int32_t starts[kMaxBlockRows];           ///< what the sums of a row start at
};

/// Of so many quads in rows one may be large, before numbers of 16 bits are faster.
constexpr std::int64_t kQuadsPerLarge = 8;

/// Do left bytes with that zero point count as signed?
constexpr bool counts_as_signed(std::int32_t zero) { return zero >= 64 && zero < 192; }

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
inline bool multiplies_pairs() { return !multiplies_bytes(); }

/// Left bytes count as unsigned. Weights are read where they lie.
class UnsignedPairs {
 public:
  static constexpr bool kWaits = false;
  static constexpr bool kHasRowStarts = false;
  using Right = const std::int8_t*;

  HWY_INLINE UnsignedPairs() : ones_(_mm256_set1_epi16(1)) {}

  HWY_INLINE Right load(const std::int8_t* from) const { return from; }
  HWY_INLINE hn::Vec<D32> add(hn::Vec<D32> sum, hn::Vec<D32> x, Right w) const {
    __m256i pairs;
    asm("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
        : "+x"(sum.raw), "=&x"(pairs)
        : "x"(x.raw), "m"(*reinterpret_cast<const __m256i_u*>(w)), "x"(ones_));
    return sum;
  }

 private:
  __m256i ones_;
};

/// Left bytes count as signed, weights are 128 larger.
class SignedPairs {
 public:
  static constexpr bool kWaits = false;
  static constexpr bool kHasRowStarts = true;
  using Right = __m256i;

  HWY_INLINE Right load(const std::int8_t* from) const {
    return _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(from)), _mm256_set1_epi8(-128));
  }
  HWY_INLINE hn::Vec<D32> add(hn::Vec<D32> sum, hn::Vec<D32> x, Right w) const {
    alignas(32) static constexpr std::int16_t kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    __m256i pairs;
    asm("vpmaddubsw %2, %3, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
        : "+x"(sum.raw), "=&x"(pairs)
        : "x"(x.raw), "x"(w), "m"(*reinterpret_cast<const __m256i*>(kOnes)));
    return sum;
  }
};

/// Which of eight quads have a pair that is too large, a bit for each.
template <bool kSigned>
HWY_INLINE unsigned large_quads(__m256i bytes) {
  const __m256i magnitudes = kSigned ? _mm256_abs_epi8(bytes) : bytes;
  const __m256i pairs = _mm256_maddubs_epi16(magnitudes, _mm256_set1_epi8(1));
  const __m256i large = _mm256_cmpgt_epi16(pairs, _mm256_set1_epi16(kSigned ? 128 : 256));
  if (_mm256_testz_si256(large, large) != 0) return 0;
  const __m256i small = _mm256_cmpeq_epi32(large, _mm256_setzero_si256());
  return 0xff & ~static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(small)));
}

/// Puts the quads of rows [0, rows), which `taken` were taken of, back.
inline void put_back(std::uint8_t* bytes, std::int64_t rows, std::int64_t quads, const LargeQuad* large,
                     const std::int32_t* first, std::int64_t taken) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t end = row + 1 < rows ? first[row + 1] : taken;
    for (std::int64_t i = first[row]; i < end; ++i)
      __builtin_memcpy(bytes + 4 * (row * quads + large[i].quad), large[i].bytes, 4);
  }
}

/// Moves the large quads of `rows` rows of `quads` quads to `large`; if there are more than `most`, it says so and
/// leaves all where they were.
template <bool kSigned>
bool take_large_quads(std::uint8_t* bytes, std::int64_t rows, std::int64_t quads, LargeQuad* large, std::int64_t most,
                      std::int32_t* first) {
  const std::int64_t count = rows * quads;
  std::int64_t row = 0;
  std::int32_t taken = 0;
  first[0] = 0;
  for (std::int64_t i = 0; i < count; i += 8) {
    alignas(32) std::uint8_t part[32] = {};
    const std::uint8_t* from = bytes + 4 * i;
    if (count - i < 8) from = static_cast<const std::uint8_t*>(__builtin_memcpy(part, from, 4 * (count - i)));
    unsigned found = large_quads<kSigned>(_mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(from)));
    for (; found != 0; found &= found - 1) {
      const std::int64_t at = i + __builtin_ctz(found);
      for (; at >= (row + 1) * quads; ++row) first[row + 1] = taken;
      if (taken == most) {
        put_back(bytes, row + 1, quads, large, first, taken);
        return false;
      }
      large[taken].quad = static_cast<std::int32_t>(at - row * quads);
      __builtin_memcpy(large[taken++].bytes, bytes + 4 * at, 4);
      __builtin_memset(bytes + 4 * at, 0, 4);
    }
  }
  for (; row < rows; ++row) first[row + 1] = taken;
  return true;
}

/// What takes the 128 of each weight off: -128 times the sum of a row of signed bytes.
inline std::int32_t start_of_row(const std::uint8_t* row, std::int64_t quads) {
  const __m256i flips = _mm256_set1_epi8(-128);
  __m256i sums = _mm256_setzero_si256();
  std::int64_t i = 0;
  for (; i + 8 <= quads; i += 8) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(row + 4 * i));
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(_mm256_xor_si256(bytes, flips), _mm256_setzero_si256()));
  }
  const __m128i halves = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  auto sum = static_cast<std::uint32_t>(_mm_extract_epi64(halves, 0) + _mm_extract_epi64(halves, 1));
  sum -= static_cast<std::uint32_t>(i) * 4 * 128;
  for (i *= 4; i < 4 * quads; ++i) sum += static_cast<std::uint32_t>(std::int32_t{static_cast<std::int8_t>(row[i])});
  return static_cast<std::int32_t>(0U - 128U * sum);
}

/// Makes rows of bytes, signed ones or not, ready; false, and nothing changed, if too many pairs are large. There is
/// room for one large quad in two.
inline bool prepare_pairs(std::uint8_t* bytes, std::int64_t rows, std::int64_t quads, bool is_signed, LargeQuad* large,
                          PairRows& to) {
  const std::int64_t most = rows * quads / kQuadsPerLarge;
  const auto take = is_signed ? take_large_quads<true> : take_large_quads<false>;
  if (!take(bytes, rows, quads, large, most, to.first_large)) return false;
  to.is_signed = is_signed;
  to.large = large;
  if (is_signed)
    for (std::int64_t row = 0; row < rows; ++row) to.starts[row] = start_of_row(bytes + 4 * row * quads, quads);
  return true;
}

/// Adds the products of one row's large quads.
inline void add_large_quads(const LargeQuad* from, const LargeQuad* end, bool is_signed, const std::int8_t* panel,
                            std::int64_t columns, std::int32_t* sums) {
  for (; from < end; ++from) {
    std::int32_t x[4];
    for (int i = 0; i < 4; ++i) x[i] = is_signed ? static_cast<std::int8_t>(from->bytes[i]) : from->bytes[i];
    const __m256i even =
        _mm256_set1_epi32(static_cast<std::int32_t>((x[0] & 0xffff) | (static_cast<unsigned>(x[2]) << 16)));
    const __m256i odd =
        _mm256_set1_epi32(static_cast<std::int32_t>((x[1] & 0xffff) | (static_cast<unsigned>(x[3]) << 16)));
    for (std::int64_t c = 0; c < columns; c += kLanes) {
      const auto* at = reinterpret_cast<const __m256i_u*>(panel + 4 * (from->quad * kPanel + c));
      const __m256i weights = _mm256_loadu_si256(at);
      const __m256i first = _mm256_madd_epi16(_mm256_srai_epi16(_mm256_slli_epi16(weights, 8), 8), even);
      const __m256i second = _mm256_madd_epi16(_mm256_srai_epi16(weights, 8), odd);
      auto* to = reinterpret_cast<__m256i_u*>(sums + c);
      _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), _mm256_add_epi32(first, second)));
    }
  }
}

/// The sums of the products of rows [row, row + rows) of `pairs`, which begin at `a`; they start at `start`, one number
/// per column.
inline void sum_pairs(const std::uint8_t* a, const PairRows& pairs, std::int64_t row, std::int64_t rows,
                      const Span& span, const std::int8_t* panel, std::int64_t columns, const std::int32_t* start,
                      Sums& sums) {
  if (pairs.is_signed) {
    sum_bytes<SignedPairs>(a, rows, span, panel, columns, start, pairs.starts + row, sums);
  } else {
    sum_bytes<UnsignedPairs>(a, rows, span, panel, columns, start, nullptr, sums);
  }
  if (pairs.first_large[row] == pairs.first_large[row + rows]) return;
  for (std::int64_t r = 0; r < rows; ++r)
    add_large_quads(pairs.large + pairs.first_large[row + r], pairs.large + pairs.first_large[row + r + 1],
                    pairs.is_signed, panel, columns, sums.at + r * kColumns);
}
#else
inline bool multiplies_pairs() { return false; }
inline bool prepare_pairs(std::uint8_t* /*bytes*/, std::int64_t /*rows*/, std::int64_t /*quads*/, bool /*is_signed*/,
                          LargeQuad* /*large*/, PairRows& /*to*/) {
  return false;
}
inline void sum_pairs(const std::uint8_t* /*a*/, const PairRows& /*pairs*/, std::int64_t /*row*/, std::int64_t /*rows*/,
                      const Span& /*span*/, const std::int8_t* /*panel*/, std::int64_t /*columns*/,
                      const std::int32_t* /*start*/, Sums& /*sums*/) {}
#endif

}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
