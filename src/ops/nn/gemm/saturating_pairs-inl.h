// Products of bytes where the processor adds two of them in 16 bits and limits the sum (AVX2 without VNNI): half as
// many instructions as with numbers of 16 bits, and exact as long as no sum is limited. Either left bytes count as
// unsigned and weights as signed, or, where the zero point lies in the middle, left bytes count as signed and 128 is
// added to the weights. Whatever the weights are, a sum is not limited if the magnitudes of the two left bytes add up
// to 256, or 128 if signed. Quads that have larger pairs are multiplied in two parts: the first bytes of both pairs
// where they lie, zeros in place of the second ones, and these once more behind all quads of the tile. Included by
// gemm_i8_simd.cpp inside Highway's per-target compilation.
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
#include "ops/nn/gemm/sums_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {

/// Rows of bytes that are ready for products in pairs; second parts as in Extras.
struct PairRows {
  bool is_signed = false;
  std::int64_t tile = 1;  ///< rows of a tile
  std::int64_t most = 0;  ///< second parts
  const SecondPart* seconds = nullptr;
  std::int32_t first_second[kMaxBlockRows + 1];
  std::int32_t starts[kMaxBlockRows];  ///< what the sums of a row start at

  /// Of row `row`, the first of a tile.
  Extras extras(std::int64_t row, const std::int32_t* columns) const {
    return {columns, starts + row, seconds, first_second + row / tile};
  }
};

/// Rows of fewer quads gain less, in so many panels of columns, than it takes to look through them.
constexpr std::int64_t least_pair_quads(std::int64_t panels) { return panels > 2 ? 16 : 24; }

/// Of so many quads of a tile one may have two parts, before numbers of 16 bits are faster: a second part takes the
/// time that five quads gain, and to split quads what they gain in some panels of columns.
constexpr std::int64_t quads_per_second(std::int64_t panels) { return 6 + 16 / panels; }

/// Do left bytes with that zero point count as signed?
constexpr bool counts_as_signed(std::int32_t zero) { return zero >= 64 && zero < 192; }

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
inline bool multiplies_pairs() { return !multiplies_bytes(); }

/// Left bytes count as unsigned. Weights are read where they lie.
class UnsignedPairs {
 public:
  static constexpr bool kWaits = false;
  static constexpr bool kHasRows = false;
  static constexpr bool kHasSeconds = true;
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
  static constexpr bool kHasRows = true;
  static constexpr bool kHasSeconds = true;
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

/// Pairs of 32 bytes that are too large: all bits of their 16 are set.
template <bool kSigned>
HWY_INLINE __m256i large_pairs(__m256i bytes) {
  const __m256i magnitudes = kSigned ? _mm256_abs_epi8(bytes) : bytes;
  const __m256i pairs = _mm256_maddubs_epi16(magnitudes, _mm256_set1_epi8(1));
  return _mm256_cmpgt_epi16(pairs, _mm256_set1_epi16(kSigned ? 128 : 256));
}

/// A bit for each quad of which a pair is set.
HWY_INLINE unsigned quads_of(__m256i pairs) {
  const __m256i clear = _mm256_cmpeq_epi32(pairs, _mm256_setzero_si256());
  return 0xff & ~static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(clear)));
}

/// Splits quads [first, first + 8) of `rows` rows of `quads` quads, of which `found` are too large in some row.
template <bool kSigned>
SecondPart* split_quads(std::uint8_t* bytes, std::int64_t rows, std::int64_t quads, std::int64_t first, unsigned found,
                        SecondPart* to) {
  for (; found != 0; found &= found - 1, ++to) {
    *to = {.quad = static_cast<std::int32_t>(first + __builtin_ctz(found))};
    for (std::int64_t row = 0; row < rows; ++row) {
      std::uint8_t* at = bytes + 4 * (row * quads + to->quad);
      std::uint32_t quad;
      __builtin_memcpy(&quad, at, sizeof quad);
      const __m256i pairs = large_pairs<kSigned>(_mm256_castsi128_si256(_mm_cvtsi32_si128(static_cast<int>(quad))));
      if ((quads_of(pairs) & 1) == 0) continue;
      constexpr std::uint32_t kFirst = 0x00ff00ff;
      const std::uint32_t parts[2] = {quad & kFirst, quad & ~kFirst};
      __builtin_memcpy(at, &parts[0], sizeof quad);
      __builtin_memcpy(to->bytes[row], &parts[1], sizeof quad);
    }
  }
  return to;
}

/// Calls f(first, found) for every eight quads from `first` on of a tile, of which `found` are too large in some row,
/// until it says that it is enough. Requires 8 quads; the last eight may have been seen in part.
template <bool kSigned, typename F>
HWY_INLINE void for_large_quads(const std::uint8_t* bytes, std::int64_t rows, std::int64_t quads, F f) {
  static_assert(least_pair_quads(1) >= 8 && least_pair_quads(3) >= 8);
  for (std::int64_t next = 0; next < quads; next += 8) {
    const std::int64_t first = std::min(next, quads - 8);
    __m256i large = _mm256_setzero_si256();
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::uint8_t* from = bytes + 4 * (row * quads + first);
      const __m256i eight = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(from));
      large = _mm256_or_si256(large, large_pairs<kSigned>(eight));
    }
    if (_mm256_testz_si256(large, large) != 0) continue;
    const unsigned unseen = 0xffU << (next - first);
    if (f(first, quads_of(large) & unseen)) return;
  }
}

template <bool kSigned>
std::int64_t count_large(const std::uint8_t* bytes, std::int64_t rows, std::int64_t quads) {
  std::int64_t count = 0;
  for_large_quads<kSigned>(bytes, rows, quads, [&](std::int64_t /*first*/, unsigned found) HWY_ATTR {
    count += __builtin_popcount(found);
    return false;
  });
  return count;
}

/// Splits the large quads of a tile; false if these reach `end` before all are split.
template <bool kSigned>
bool split_tile(std::uint8_t* bytes, std::int64_t rows, std::int64_t quads, SecondPart*& to, const SecondPart* end) {
  bool fits = true;
  for_large_quads<kSigned>(bytes, rows, quads, [&](std::int64_t first, unsigned found) HWY_ATTR {
    fits = __builtin_popcount(found) <= end - to;
    if (fits) to = split_quads<kSigned>(bytes, rows, quads, first, found, to);
    return !fits;
  });
  return fits;
}

/// Joins the parts of a tile's quads again.
inline void join_quads(std::uint8_t* bytes, std::int64_t rows, std::int64_t quads, const SecondPart* from,
                       const SecondPart* end) {
  for (; from < end; ++from)
    for (std::int64_t row = 0; row < rows; ++row)
      for (int i = 1; i < 4; i += 2) bytes[4 * (row * quads + from->quad) + i] |= from->bytes[row][i];
}

inline std::int64_t tile_count(std::int64_t rows, const PairRows& of) { return (rows + of.tile - 1) / of.tile; }

/// Has the first of several tiles so many large quads that, were all like it, there would be far too many?
template <bool kSigned>
bool first_tile_has_too_many(const std::uint8_t* bytes, std::int64_t rows, std::int64_t quads, const PairRows& to) {
  return rows > to.tile &&
         2 * count_large<kSigned>(bytes, std::min(to.tile, rows), quads) * tile_count(rows, to) > 3 * to.most;
}

/// Splits the large quads of all tiles; false, and nothing changed, if there are too many.
template <bool kSigned>
bool split_tiles(std::uint8_t* bytes, std::int64_t rows, std::int64_t quads, SecondPart* seconds, PairRows& to) {
  const std::int64_t room = 4 * rows * quads / static_cast<std::int64_t>(sizeof(SecondPart));
  const std::int64_t tiles = tile_count(rows, to);
  const SecondPart* end = seconds + std::min(room, to.most);
  SecondPart* next = seconds;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const std::int64_t row = tile * to.tile;
    to.first_second[tile] = static_cast<std::int32_t>(next - seconds);
    if (split_tile<kSigned>(bytes + 4 * row * quads, std::min(to.tile, rows - row), quads, next, end)) continue;
    to.first_second[tile + 1] = static_cast<std::int32_t>(next - seconds);
    for (std::int64_t t = 0; t <= tile; ++t)
      join_quads(bytes + 4 * t * to.tile * quads, std::min(to.tile, rows - t * to.tile), quads,
                 seconds + to.first_second[t], seconds + to.first_second[t + 1]);
    return false;
  }
  to.first_second[tiles] = static_cast<std::int32_t>(next - seconds);
  return true;
}

/// What takes the 128 of each weight off: -128 times the sum of a row of signed bytes.
inline std::int32_t start_of_row(const std::uint8_t* row, std::int64_t quads) {
  return static_cast<std::int32_t>(0U - 128U * row_sum_i8(row, 4 * quads, 0));
}

template <bool kSigned>
bool prepare_rows(std::uint8_t* bytes, std::int64_t rows, std::int64_t quads, SecondPart* seconds, PairRows& to) {
  if (first_tile_has_too_many<kSigned>(bytes, rows, quads, to)) return false;
  if (kSigned)
    for (std::int64_t row = 0; row < rows; ++row) to.starts[row] = start_of_row(bytes + 4 * row * quads, quads);
  return split_tiles<kSigned>(bytes, rows, quads, seconds, to);
}

/// Makes rows of bytes, signed ones or not, ready for tiles of to.tile rows; false, and the bytes unchanged, if there
/// would be more than to.most second parts, or they would take more bytes than the rows.
inline bool prepare_pairs(std::uint8_t* bytes, std::int64_t rows, std::int64_t quads, bool is_signed,
                          SecondPart* seconds, PairRows& to) {
  to.is_signed = is_signed;
  to.seconds = seconds;
  return (is_signed ? prepare_rows<true> : prepare_rows<false>)(bytes, rows, quads, seconds, to);
}

/// The sums of the products of rows [row, row + rows) of `pairs`, which begin at `a`; they start at `start`, one number
/// per column.
inline void sum_pairs(const std::uint8_t* a, const PairRows& pairs, std::int64_t row, std::int64_t rows,
                      const Span& span, const std::int8_t* panel, std::int64_t columns, const std::int32_t* start,
                      Sums& sums) {
  const auto sum = pairs.is_signed ? sum_bytes<SignedPairs> : sum_bytes<UnsignedPairs>;
  sum(a, rows, span, panel, columns, pairs.extras(row, start), sums);
}

/// The same of `tiles` whole tiles from row 0 on, which go to `end`.
template <int kTileVectors, class End>
void sum_pair_tiles(const std::uint8_t* a, const PairRows& pairs, std::int64_t tiles, const Span& span,
                    const std::int8_t* panel, const std::int32_t* start, const End& end) {
  const auto sum = pairs.is_signed ? sum_byte_tiles_of<SignedPairs, kByteRows, kTileVectors, End>
                                   : sum_byte_tiles_of<UnsignedPairs, kByteRows, kTileVectors, End>;
  sum(a, tiles, span, panel, pairs.extras(0, start), end);
}
#else
inline bool multiplies_pairs() { return false; }
inline bool prepare_pairs(std::uint8_t* /*bytes*/, std::int64_t /*rows*/, std::int64_t /*quads*/, bool /*is_signed*/,
                          SecondPart* /*seconds*/, PairRows& /*to*/) {
  return false;
}
inline void sum_pairs(const std::uint8_t* /*a*/, const PairRows& /*pairs*/, std::int64_t /*row*/, std::int64_t /*rows*/,
                      const Span& /*span*/, const std::int8_t* /*panel*/, std::int64_t /*columns*/,
                      const std::int32_t* /*start*/, Sums& /*sums*/) {}
#endif

}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
