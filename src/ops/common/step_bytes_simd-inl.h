// Numbers that are rounded to 8-bit results, four vectors at once, by a guess that is seldom unsure. Included by
// *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_STEP_BYTES_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_STEP_BYTES_SIMD_INL_H_
#undef BANTAM_OPS_STEP_BYTES_SIMD_INL_H_
#else
#define BANTAM_OPS_STEP_BYTES_SIMD_INL_H_
#endif

#include <array>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/byte_rows_avx2-inl.h"
#include "ops/common/byte_rows_avx512-inl.h"
#include "ops/common/byte_rows_neon.h"
#include "ops/common/fixed_point_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Where steps are counted from, and the least and largest result, all of the result's type.
struct ByteLimits {
  std::int32_t zero_point;
  std::int32_t minimum;
  std::int32_t maximum;
};

/// A number v, nearly: as v + 1/2 + kGuard units in units of u = 2^-13, in integers. The sum with kMiddle is computed
/// as a float between 1024 and 2048, whose last bit is one unit; |v| is at most kMostSteps. If the error, together with
/// that of the v that is to be rounded, is at most kGuard units, v + 1/2 lies strictly between the same integers where
/// the fraction is kUnsure or more: then v rounds to the lower one, and is no tie. `units`: the float's bits.
struct StepUnits {
  using D = hn::ScalableTag<std::int32_t>;
  using DF = hn::Rebind<float, D>;
  using V = hn::Vec<D>;

  static constexpr int kFractionBits = 13;
  static constexpr double kUnit = 1.0 / (1 << kFractionBits);
  static constexpr int kGuard = 4;
  static constexpr std::int32_t kUnsure = 2 * kGuard;
  static constexpr double kMiddle = 1536;
  static constexpr double kMostSteps = 480;
  /// What is added to v.
  static constexpr double kConstant = kMiddle + 0.5 + kGuard * kUnit;
  static constexpr std::int32_t kFraction = (1 << kFractionBits) - kUnsure;
  /// What is too much in the bits of a sum once the fraction is shifted out: those of the float 1536.
  static constexpr std::int32_t kMiddleSteps = 0x44C00000 >> kFractionBits;
  static_assert((kUnsure & (kUnsure - 1)) == 0);

  static HWY_INLINE V of(hn::Vec<DF> sum) { return hn::BitCast(D(), sum); }
  /// 0 in lanes where v may be next to a tie.
  static HWY_INLINE V sure_bits(V units) { return hn::And(units, hn::Set(D(), kFraction)); }
  static HWY_INLINE V rounded(V units) {
    return hn::Sub(hn::ShiftRight<kFractionBits>(units), hn::Set(D(), kMiddleSteps));
  }
};

/// A number v, nearly, as v + 1/2 + kGuard units in units of 2^-21, in integers. If the error is less than kGuard units
/// where |v| <= kMostExact, so that limits of a byte do not decide, it rounds as StepUnits say; larger v, up to kMost,
/// need only lie on their side.
struct FixedSteps {
  using D = StepUnits::D;
  using V = StepUnits::V;

  static constexpr int kFractionBits = 21;
  static constexpr double kUnits = 1 << kFractionBits;  ///< in a step
  static constexpr int kGuard = 256;
  static constexpr double kMostExact = 255.5;
  static constexpr double kMost = 1000;
  /// What is added to v.
  static constexpr std::int32_t kConstant = (1 << (kFractionBits - 1)) + kGuard;
  static constexpr std::int32_t kFraction = (1 << kFractionBits) - 2 * kGuard;
  static_assert((kGuard & (kGuard - 1)) == 0 && kMost + 1 < (1 << (31 - kFractionBits)));

  static HWY_INLINE V sure_bits(V units) { return hn::And(units, hn::Set(D(), kFraction)); }
  static HWY_INLINE V rounded(V units) { return hn::ShiftRight<kFractionBits>(units); }
};

/// May any of four vectors of Units, StepUnits or FixedSteps, be next to a tie?
template <class Units, class V>
HWY_INLINE bool any_unsure(const V (&units)[4]) {
  const StepUnits::D d;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  auto unsure = hn::Eq(Units::sure_bits(units[0]), hn::Zero(d));
  unroll<3>([&](auto i) HWY_ATTR { unsure = hn::Or(unsure, hn::Eq(Units::sure_bits(units[i + 1]), hn::Zero(d))); });
  return !hn::AllFalse(d, unsure);
#else
  // Bits that say sure are positive.
  V sure = Units::sure_bits(units[0]);
  unroll<3>([&](auto i) HWY_ATTR { sure = hn::Min(sure, Units::sure_bits(units[i + 1])); });
  return !hn::AllFalse(d, hn::Eq(sure, hn::Zero(d)));
#endif
}

/// Are guesses worth it? Numbers that make many ties need the exact way anyway.
class Guesses {
 public:
  explicit Guesses(bool apply) : try_(apply) {}

  HWY_INLINE bool worth_it() {
    tried_ += try_ ? 1 : 0;
    return try_;
  }
  void failed() { try_ = ++failed_ < kFewTries + tried_ / 4; }

 private:
  static constexpr std::int64_t kFewTries = 16;

  bool try_;
  std::int64_t tried_ = 0;
  std::int64_t failed_ = 0;
};

#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86
/// Steps from the zero point as results of type T, four vectors at once.
template <typename T>
class StepBytes {
 public:
  using V = StepUnits::V;
  static constexpr std::size_t kVectors = 4;

  HWY_INLINE explicit StepBytes(const ByteLimits& to)
      : pack_(to.zero_point - kOffset, to.minimum - kOffset, to.maximum - kOffset, kOffset),
        from_middle_(
            _mm512_set1_epi16(static_cast<std::int16_t>(to.zero_point - kOffset - (StepUnits::kMiddleSteps & 0xFFFF)))),
        zero_point_(_mm512_set1_epi16(static_cast<std::int16_t>(to.zero_point - kOffset))) {}

  HWY_INLINE void store(const V (&v)[kVectors], T* y) const {
    constexpr bool kPlain = false;
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(
        y, _mm512_permutexvar_epi32(order, pack_.operator()<kPlain>(v[0].raw, v[1].raw, v[2].raw, v[3].raw)));
  }

  /// The same of Units, StepUnits or FixedSteps, rounded; false, and nothing is stored, where any may be next to a tie.
  template <class Units>
  HWY_INLINE bool store_sure(const V (&units)[kVectors], T* y) const {
    if constexpr (std::is_same_v<Units, FixedSteps>) return store_fixed(units, y);
    const __m512i first_low = low_words(units[0].raw, units[1].raw);
    const __m512i second_low = low_words(units[2].raw, units[3].raw);
    const __m512i fraction = _mm512_set1_epi16(static_cast<std::int16_t>(StepUnits::kFraction));
    const __mmask32 first_unsure = _mm512_testn_epi16_mask(first_low, fraction);
    const __mmask32 second_unsure = _mm512_testn_epi16_mask(second_low, fraction);
    if (HWY_UNLIKELY(!_kortestz_mask32_u8(first_unsure, second_unsure))) return false;
    store_words(steps(first_low, high_words(units[0].raw, units[1].raw)),
                steps(second_low, high_words(units[2].raw, units[3].raw)), y);
    return true;
  }

 private:
  HWY_INLINE bool store_fixed(const V (&units)[kVectors], T* y) const {
    if (HWY_UNLIKELY(any_unsure<FixedSteps>(units))) return false;
    const auto steps = [&](V low, V high) HWY_ATTR {
      const __m512i words = _mm512_srai_epi16(high_words(low.raw, high.raw), FixedSteps::kFractionBits - 16);
      return _mm512_add_epi16(words, zero_point_);
    };
    store_words(steps(units[0], units[1]), steps(units[2], units[3]), y);
    return true;
  }

  /// Numbers with the zero point.
  HWY_INLINE void store_words(__m512i first, __m512i second, T* y) const {
    constexpr bool kPlain = false;
    // Packing takes eight numbers of each in turn.
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    _mm512_storeu_si512(y, _mm512_permutexvar_epi64(order, pack_.bytes<kPlain>(first, second)));
  }

  static constexpr std::uint8_t kOffset = std::is_same_v<T, std::uint8_t> ? 128 : 0;  ///< of a number to int8

  static HWY_INLINE __m512i low_words(__m512i a, __m512i b) { return _mm512_permutex2var_epi16(a, even_words(), b); }
  static HWY_INLINE __m512i high_words(__m512i a, __m512i b) {
    return _mm512_permutex2var_epi16(a, _mm512_add_epi16(even_words(), _mm512_set1_epi16(1)), b);
  }
  static HWY_INLINE __m512i even_words() {
    alignas(64) static constexpr auto kEven = [] {
      std::array<std::int16_t, 32> even{};
      for (std::int16_t i = 0; i < 32; ++i) even[i] = 2 * i;
      return even;
    }();
    return _mm512_load_si512(kEven.data());
  }
  /// With the zero point; less than 16 bits.
  HWY_INLINE __m512i steps(__m512i low, __m512i high) const {
    return _mm512_add_epi16(_mm512_shrdi_epi16(low, high, StepUnits::kFractionBits), from_middle_);
  }

  BytePacker pack_;
  __m512i from_middle_;
  __m512i zero_point_;
};
#elif HWY_ARCH_ARM_A64
/// Steps from the zero point as results of type T, four vectors at once.
template <typename T>
class StepBytes {
 public:
  using V = StepUnits::V;
  static constexpr std::size_t kVectors = 4;

  HWY_INLINE explicit StepBytes(const ByteLimits& to)
      : bytes_(to.zero_point - kOffset, to.minimum - kOffset, to.maximum - kOffset, kOffset),
        from_middle_(
            vdupq_n_s16(static_cast<std::int16_t>(to.zero_point - kOffset - (StepUnits::kMiddleSteps & 0xFFFF)))),
        zero_point_(vdupq_n_s16(static_cast<std::int16_t>(to.zero_point - kOffset))) {}

  HWY_INLINE void store(const V (&v)[kVectors], T* y) const {
    bytes_.store({v[0].raw, v[1].raw, v[2].raw, v[3].raw}, reinterpret_cast<std::uint8_t*>(y));
  }

  /// The same of Units, StepUnits or FixedSteps, rounded; false, and nothing is stored, where any may be next to a tie.
  template <class Units>
  HWY_INLINE bool store_sure(const V (&units)[kVectors], T* y) const {
    if constexpr (std::is_same_v<Units, FixedSteps>) return store_fixed(units, y);
    const int16x8_t fraction = vdupq_n_s16(static_cast<std::int16_t>(StepUnits::kFraction));
    const uint16x8_t first_sure = vtstq_s16(low_words(units[0], units[1]), fraction);
    const uint16x8_t second_sure = vtstq_s16(low_words(units[2], units[3]), fraction);
    if (HWY_UNLIKELY(vminvq_u16(vandq_u16(first_sure, second_sure)) == 0)) return false;
    bytes_.store(steps(units[0], units[1]), steps(units[2], units[3]), reinterpret_cast<std::uint8_t*>(y));
    return true;
  }

 private:
  static constexpr std::uint8_t kOffset = std::is_same_v<T, std::uint8_t> ? 128 : 0;  ///< of a number to int8

  HWY_INLINE bool store_fixed(const V (&units)[kVectors], T* y) const {
    if (HWY_UNLIKELY(any_unsure<FixedSteps>(units))) return false;
    const auto steps = [&](V low, V high) HWY_ATTR {
      const int16x8_t words = vuzp2q_s16(vreinterpretq_s16_s32(low.raw), vreinterpretq_s16_s32(high.raw));
      return vaddq_s16(vshrq_n_s16(words, FixedSteps::kFractionBits - 16), zero_point_);
    };
    bytes_.store(steps(units[0], units[1]), steps(units[2], units[3]), reinterpret_cast<std::uint8_t*>(y));
    return true;
  }

  static HWY_INLINE int16x8_t low_words(V a, V b) {
    return vuzp1q_s16(vreinterpretq_s16_s32(a.raw), vreinterpretq_s16_s32(b.raw));
  }
  /// With the zero point; less than 16 bits.
  HWY_INLINE int16x8_t steps(V low, V high) const {
    constexpr int kBits = StepUnits::kFractionBits;
    return vaddq_s16(vshrn_high_n_s32(vshrn_n_s32(low.raw, kBits), high.raw, kBits), from_middle_);
  }

  neon::ByteRows bytes_;
  int16x8_t from_middle_;
  int16x8_t zero_point_;
};
#else
/// Steps from the zero point as results of type T, four vectors at once.
template <typename T>
class StepBytes {
 public:
  using D = StepUnits::D;
  using V = StepUnits::V;
  static constexpr std::size_t kVectors = 4;

  /// The same of Units, StepUnits or FixedSteps, rounded; false, and nothing is stored, where any may be next to a tie.
  template <class Units>
  HWY_INLINE bool store_sure(const V (&units)[kVectors], T* y) const {
    if (HWY_UNLIKELY(any_unsure<Units>(units))) return false;
    V v[kVectors];
    unroll<kVectors>([&](auto i) HWY_ATTR { v[i] = Units::rounded(units[i]); });
    store(v, y);
    return true;
  }

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
  HWY_INLINE explicit StepBytes(const ByteLimits& to)
      : bytes_(to.zero_point - kOffset, to.minimum - kOffset, to.maximum - kOffset, kOffset) {}

  HWY_INLINE void store(const V (&v)[kVectors], T* y) const {
    auto* to = reinterpret_cast<std::uint8_t*>(y);
    bytes_.store(v[0], v[1], v[2], v[3], to, to + 2 * hn::MaxLanes(D()));
  }

 private:
  static constexpr std::uint8_t kOffset = std::is_same_v<T, std::uint8_t> ? 128 : 0;  ///< of a number to int8

  ByteRows bytes_;
#else
  HWY_INLINE explicit StepBytes(const ByteLimits& to)
      : low_(hn::Set(D(), to.minimum - to.zero_point)),
        high_(hn::Set(D(), to.maximum - to.zero_point)),
        zero_(hn::Set(D(), to.zero_point)) {}

  HWY_INLINE void store(const V (&v)[kVectors], T* y) const {
    unroll<kVectors>([&](auto i) HWY_ATTR {
      store_narrow<T>(D(), hn::Add(hn::Min(hn::Max(v[i], low_), high_), zero_), y + i * hn::MaxLanes(D()));
    });
  }

 private:
  V low_;
  V high_;
  V zero_;
#endif
};
#endif

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
