// Rows of bytes interleaved to groups, and sums of a group's products: four rows as they are where the processor
// multiplies quads of bytes (VNNI, Arm's dot products), two rows widened to 16 bits with AVX2. A number of 32 bits
// holds what lies at one place of all rows of a group; numbers follow each other like the places. Included by
// *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_DEPTHWISE_ROW_GROUPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_ROW_GROUPS_SIMD_INL_H_
#undef BANTAM_OPS_DEPTHWISE_ROW_GROUPS_SIMD_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_ROW_GROUPS_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/quad_products_simd-inl.h"
#include "ops/common/short_copy.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2))

#if HWY_ARCH_ARM_A64
constexpr int kGroupRows = 4;
using DSum = hn::CappedTag<std::int32_t, 4>;
#elif HWY_TARGET == HWY_AVX3_DL
constexpr int kGroupRows = 4;
using DSum = hn::CappedTag<std::int32_t, 16>;
#else
constexpr int kGroupRows = 2;
using DSum = hn::CappedTag<std::int32_t, 8>;
#endif
constexpr std::int64_t kVectorLanes = static_cast<std::int64_t>(hn::MaxLanes(DSum()));

/// Sums of neighbouring channels, or what they are made of: a vector, or with Arm's short ones two.
#if HWY_ARCH_ARM_A64
struct VSum {
  int32x4_t low;
  int32x4_t high;
};
constexpr std::int64_t kSumLanes = 2 * kVectorLanes;

HWY_INLINE VSum load_sums(const std::int32_t* from) {
  // One instruction, which the compiler does not find where it computes addresses in between.
  VSum sums;
  asm("ldp %q0, %q1, %2"
      : "=w"(sums.low), "=w"(sums.high)
      : "Q"(*reinterpret_cast<const std::int32_t(*)[kSumLanes]>(from)));
  return sums;
}
HWY_INLINE void store_sums(VSum sums, std::int32_t* to) {
  vst1q_s32(to, sums.low);
  vst1q_s32(to + kVectorLanes, sums.high);
}
#else
using VSum = hn::Vec<DSum>;
constexpr std::int64_t kSumLanes = kVectorLanes;

HWY_INLINE VSum load_sums(const std::int32_t* from) { return hn::LoadU(DSum(), from); }
HWY_INLINE void store_sums(VSum sums, std::int32_t* to) { hn::StoreU(sums, DSum(), to); }
#endif

/// The rows of a group: bytes that a row has not are `outside`, and of others the bits of `flip` are inverted.
struct RowGroup {
  const std::uint8_t* rows[kGroupRows];  ///< any row instead of one that is not there
  bool there[kGroupRows];
  std::uint8_t flip;
  std::uint8_t outside;
};

/// Are bytes widened as signed numbers? Quads keep them as they are.
enum class Widening { kUnsigned, kSigned };

#if HWY_ARCH_ARM_A64 || HWY_TARGET == HWY_AVX3_DL
/// Sums plus the products of groups: of bytes, which are unsigned on x86 and signed on Arm, and of signed ones.
HWY_INLINE hn::Vec<DSum> add_group_products(hn::Vec<DSum> sums, hn::Vec<DSum> x, hn::Vec<DSum> w) {
  return ops::HWY_NAMESPACE::add_quad_products(sums, x, w);
}
#if HWY_ARCH_ARM_A64
HWY_INLINE VSum add_group_products(VSum sums, VSum x, VSum w) {
  using V = hn::Vec<DSum>;
  return {add_group_products(V(sums.low), V(x.low), V(w.low)).raw,
          add_group_products(V(sums.high), V(x.high), V(w.high)).raw};
}
#endif

/// The number at places where no row has anything but `byte`.
constexpr std::int32_t group_of(std::uint8_t byte) { return static_cast<std::int32_t>(0x01010101U * byte); }
#endif

/// As what bytes are multiplied that become int8 with that zero point by `sign_flip`.
constexpr gemm::ByteForm group_form(std::uint8_t sign_flip, std::int32_t zero_point) {
#if HWY_ARCH_ARM_A64
  return {sign_flip, zero_point};
#else
  return gemm::byte_form(sign_flip, zero_point);
#endif
}

#if HWY_ARCH_ARM_A64
template <Widening>
class Interleaver {
 public:
  HWY_INLINE explicit Interleaver(const RowGroup& group) {
    ops::HWY_NAMESPACE::unroll<kGroupRows>([&](auto i) HWY_ATTR {
      rows_[i] = group.rows[i];
      inside_[i] = vdupq_n_u8(group.there[i] ? 0xFF : 0);
      flip_[i] = vdupq_n_u8(group.there[i] ? group.flip : group.outside);
      all_there_ = all_there_ && group.there[i];
    });
  }

  /// Bytes [first, first + count) of the rows become `count` numbers; up to 15 more are written behind them.
  HWY_INLINE void operator()(std::int64_t first, std::int64_t count, std::int32_t* to) const {
    if (count < 16) return few(first, count, to);
    all_there_ ? many<true>(first, count, to) : many<false>(first, count, to);
  }

 private:
  using Bytes = const std::uint8_t* [kGroupRows];

  template <bool kAllThere>
  HWY_INLINE void many(std::int64_t first, std::int64_t count, std::int32_t* to) const {
    const Bytes rows = {rows_[0] + first, rows_[1] + first, rows_[2] + first, rows_[3] + first};
    for (std::int64_t i = 0; i < count; i += 16) {
      const std::int64_t at = std::min(i, count - 16);
      sixteen<kAllThere>({rows[0] + at, rows[1] + at, rows[2] + at, rows[3] + at}, to + at);
    }
  }

  void few(std::int64_t first, std::int64_t count, std::int32_t* to) const {
    std::uint8_t bytes[kGroupRows][16] = {};
    for (int i = 0; i < kGroupRows; ++i) copy_short(rows_[i] + first, count, bytes[i]);
    sixteen<false>({bytes[0], bytes[1], bytes[2], bytes[3]}, to);
  }
  template <bool kAllThere>
  HWY_INLINE void sixteen(const Bytes& from, std::int32_t* to) const {
    uint8x16_t v[kGroupRows];
    ops::HWY_NAMESPACE::unroll<kGroupRows>([&](auto i) HWY_ATTR {
      v[i] = vld1q_u8(from[i]);
      v[i] = kAllThere ? veorq_u8(v[i], flip_[0]) : veorq_u8(vandq_u8(v[i], inside_[i]), flip_[i]);
    });
    const uint8x16_t pairs[4] = {vzip1q_u8(v[0], v[1]), vzip2q_u8(v[0], v[1]), vzip1q_u8(v[2], v[3]),
                                 vzip2q_u8(v[2], v[3])};
    ops::HWY_NAMESPACE::unroll<2>([&](auto half) HWY_ATTR {
      const uint16x8_t low = vreinterpretq_u16_u8(pairs[half]);
      const uint16x8_t high = vreinterpretq_u16_u8(pairs[half + 2]);
      vst1q_s32(to + 8 * half, vreinterpretq_s32_u16(vzip1q_u16(low, high)));
      vst1q_s32(to + 8 * half + 4, vreinterpretq_s32_u16(vzip2q_u16(low, high)));
    });
  }

  const std::uint8_t* rows_[kGroupRows];
  uint8x16_t inside_[kGroupRows];
  uint8x16_t flip_[kGroupRows];
  bool all_there_ = true;
};
#elif HWY_TARGET == HWY_AVX3_DL
template <Widening>
class Interleaver {
 public:
  HWY_INLINE explicit Interleaver(const RowGroup& group) {
    for (int i = 0; i < kGroupRows; ++i) {
      rows_[i] = group.rows[i];
      inside_[i] = _mm512_set1_epi8(group.there[i] ? -1 : 0);
      flip_[i] = _mm512_set1_epi8(static_cast<char>(group.there[i] ? group.flip : group.outside));
    }
  }

  /// Bytes [first, first + count) of the rows become `count` numbers; up to 63 more are written behind them.
  HWY_INLINE void operator()(std::int64_t first, std::int64_t count, std::int32_t* to) const {
    std::int64_t i = 0;
    for (; i + 64 <= count; i += 64) whole(first + i, to + i);
    if (count - i > 32) return part(first + i, count - i, to + i);
    for (; i < count; i += 16) quarter(first + i, std::min<std::int64_t>(count - i, 16), to + i);
  }

 private:
  /// (x & inside) ^ flip
  HWY_INLINE __m512i chosen(__m512i x, int row) const {
    return _mm512_ternarylogic_epi32(x, inside_[row], flip_[row], 0x6A);
  }

  HWY_INLINE void whole(std::int64_t from, std::int32_t* to) const {
    __m512i v[kGroupRows];
    for (int i = 0; i < kGroupRows; ++i) v[i] = chosen(_mm512_loadu_si512(rows_[i] + from), i);
    interleave(v, to);
  }
  HWY_INLINE void part(std::int64_t from, std::int64_t count, std::int32_t* to) const {
    const __mmask64 mask = (__mmask64{1} << count) - 1;
    __m512i v[kGroupRows];
    for (int i = 0; i < kGroupRows; ++i) v[i] = chosen(_mm512_maskz_loadu_epi8(mask, rows_[i] + from), i);
    interleave(v, to);
  }
  HWY_INLINE void quarter(std::int64_t from, std::int64_t count, std::int32_t* to) const {
    const auto mask = static_cast<__mmask16>((1U << count) - 1);
    __m128i v[kGroupRows];
    for (int i = 0; i < kGroupRows; ++i) {
      const __m128i x = _mm_maskz_loadu_epi8(mask, rows_[i] + from);
      v[i] = _mm_ternarylogic_epi32(x, _mm512_castsi512_si128(inside_[i]), _mm512_castsi512_si128(flip_[i]), 0x6A);
    }
    const __m128i pairs[4] = {_mm_unpacklo_epi8(v[0], v[1]), _mm_unpackhi_epi8(v[0], v[1]),
                              _mm_unpacklo_epi8(v[2], v[3]), _mm_unpackhi_epi8(v[2], v[3])};
    for (int half = 0; half < 2; ++half) {
      auto* at = reinterpret_cast<__m128i*>(to + 8 * half);
      _mm_storeu_si128(at, _mm_unpacklo_epi16(pairs[half], pairs[half + 2]));
      _mm_storeu_si128(at + 1, _mm_unpackhi_epi16(pairs[half], pairs[half + 2]));
    }
  }

  /// Interleaving works within quarters: quarter l of the rows must hold fours l, l + 4, l + 8 and l + 12 of bytes, so
  /// that those of 16 numbers in a row come together.
  static HWY_INLINE void interleave(__m512i (&v)[kGroupRows], std::int32_t* to) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    for (__m512i& row : v) row = _mm512_permutexvar_epi32(order, row);
    const __m512i pairs[4] = {_mm512_unpacklo_epi8(v[0], v[1]), _mm512_unpackhi_epi8(v[0], v[1]),
                              _mm512_unpacklo_epi8(v[2], v[3]), _mm512_unpackhi_epi8(v[2], v[3])};
    for (int half = 0; half < 2; ++half) {
      _mm512_storeu_si512(to + 32 * half, _mm512_unpacklo_epi16(pairs[half], pairs[half + 2]));
      _mm512_storeu_si512(to + 32 * half + 16, _mm512_unpackhi_epi16(pairs[half], pairs[half + 2]));
    }
  }

  const std::uint8_t* rows_[kGroupRows];
  __m512i inside_[kGroupRows];
  __m512i flip_[kGroupRows];
};
#else
/// Sums plus the products of groups: of numbers of 16 bits.
HWY_INLINE VSum add_group_products(VSum sums, VSum x, VSum w) {
  return VSum{_mm256_add_epi32(sums.raw, _mm256_madd_epi16(x.raw, w.raw))};
}

/// The number at places where no row has anything but `byte`, an unsigned number.
constexpr std::int32_t group_of(std::uint8_t byte) { return 0x00010001 * byte; }

template <Widening kWidening>
class Interleaver {
 public:
  HWY_INLINE explicit Interleaver(const RowGroup& group) {
    for (int i = 0; i < kGroupRows; ++i) {
      rows_[i] = group.rows[i];
      inside_[i] = _mm_set1_epi8(group.there[i] ? -1 : 0);
      flip_[i] = _mm_set1_epi8(static_cast<char>(group.there[i] ? group.flip : group.outside));
    }
  }

  /// Bytes [first, first + count) of the rows become `count` numbers; up to 15 more are written behind them.
  HWY_INLINE void operator()(std::int64_t first, std::int64_t count, std::int32_t* to) const {
    if (count < 16) return few(first, count, to);
    for (std::int64_t i = 0; i < count; i += 16) {
      const std::int64_t at = std::min(i, count - 16);
      sixteen(rows_[0] + first + at, rows_[1] + first + at, to + at);
    }
  }

 private:
  void few(std::int64_t first, std::int64_t count, std::int32_t* to) const {
    std::uint8_t bytes[kGroupRows][16] = {};
    for (int i = 0; i < kGroupRows; ++i) copy_short(rows_[i] + first, count, bytes[i]);
    sixteen(bytes[0], bytes[1], to);
  }
  HWY_INLINE __m128i load(const std::uint8_t* from, int row) const {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm_xor_si128(_mm_and_si128(x, inside_[row]), flip_[row]);
  }
  HWY_INLINE void sixteen(const std::uint8_t* a, const std::uint8_t* b, std::int32_t* to) const {
    const __m128i first = load(a, 0);
    const __m128i second = load(b, 1);
    store(_mm_unpacklo_epi8(first, second), to);
    store(_mm_unpackhi_epi8(first, second), to + 8);
  }
  static HWY_INLINE void store(__m128i pairs, std::int32_t* to) {
    const __m256i wide = kWidening == Widening::kSigned ? _mm256_cvtepi8_epi16(pairs) : _mm256_cvtepu8_epi16(pairs);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), wide);
  }

  const std::uint8_t* rows_[kGroupRows];
  __m128i inside_[kGroupRows];
  __m128i flip_[kGroupRows];
};
#endif
#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
