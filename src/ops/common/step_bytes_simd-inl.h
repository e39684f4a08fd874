// Numbers that are rounded to 8-bit results, four vectors at once, by a guess that is seldom unsure. Included by
// *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_STEP_BYTES_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_STEP_BYTES_SIMD_INL_H_
#undef BANTAM_OPS_STEP_BYTES_SIMD_INL_H_
#else
#define BANTAM_OPS_STEP_BYTES_SIMD_INL_H_
#endif

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
/// the fraction is kUnsure or more: then v rounds to the lower one, and is no tie.
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
  static_assert((kUnsure & (kUnsure - 1)) == 0);

  static HWY_INLINE V of(hn::Vec<DF> sum) {
    constexpr std::int32_t kMiddleBits = 0x44C00000;  // of the float 1536
    return hn::Sub(hn::BitCast(D(), sum), hn::Set(D(), kMiddleBits));
  }
  /// 0 in lanes where v may be next to a tie.
  static HWY_INLINE V sure_bits(V units) { return hn::And(units, hn::Set(D(), (1 << kFractionBits) - kUnsure)); }
  static HWY_INLINE V rounded(V units) { return hn::ShiftRight<kFractionBits>(units); }

  /// Rounds four vectors if all their lanes are sure; else false.
  static HWY_INLINE bool round(V (&units)[4]) {
    V sure = sure_bits(units[0]);
    unroll<3>([&](auto i) HWY_ATTR { sure = hn::Min(sure, sure_bits(units[i + 1])); });
    if (HWY_UNLIKELY(!hn::AllFalse(D(), hn::Eq(sure, hn::Zero(D()))))) return false;
    unroll<4>([&](auto i) HWY_ATTR { units[i] = rounded(units[i]); });
    return true;
  }
};

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

/// Steps from the zero point as results of type T, four vectors at once.
template <typename T>
class StepBytes {
 public:
  using D = hn::ScalableTag<std::int32_t>;
  using V = hn::Vec<D>;
  static constexpr std::size_t kVectors = 4;

#if HWY_ARCH_ARM_A64 || ((HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2) && HWY_ARCH_X86)
  HWY_INLINE explicit StepBytes(const ByteLimits& to) : bytes_(byte_rows(to)) {}

  HWY_INLINE void store(const V (&v)[kVectors], T* y) const {
    auto* to = reinterpret_cast<std::uint8_t*>(y);
#if HWY_ARCH_ARM_A64
    bytes_.store({v[0].raw, v[1].raw, v[2].raw, v[3].raw}, to);
#else
    bytes_.store(v[0], v[1], v[2], v[3], to, to + kRow);
#endif
  }

 private:
  static constexpr std::int64_t kRow = 2 * hn::MaxLanes(D());                         ///< bytes of two vectors
  static constexpr std::uint8_t kOffset = std::is_same_v<T, std::uint8_t> ? 128 : 0;  ///< of a number to int8

#if HWY_ARCH_ARM_A64
  using ByteRows = neon::ByteRows;
#endif

  static HWY_INLINE ByteRows byte_rows(const ByteLimits& to) {
    const std::int32_t zero_point = to.zero_point - kOffset;
#if HWY_ARCH_ARM_A64 || HWY_TARGET == HWY_AVX2
    return {zero_point, to.minimum - kOffset, to.maximum - kOffset, kOffset};
#else
    return {zero_point, to.minimum - kOffset, to.maximum - kOffset, kOffset, kRow};
#endif
  }

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

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
