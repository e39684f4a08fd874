// Activations of quantised results that take so few instructions that kernels compute them where the sums are, in
// registers; all others: round_activated (activate_rows.h). Included by *_simd.cpp files inside Highway's per-target
// compilation.
#if defined(BANTAM_OPS_ACTIVATION_STEPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_ACTIVATION_STEPS_SIMD_INL_H_
#undef BANTAM_OPS_ACTIVATION_STEPS_SIMD_INL_H_
#else
#define BANTAM_OPS_ACTIVATION_STEPS_SIMD_INL_H_
#endif

#include "hwy/highway.h"
#include "ops/common/affine_form.h"
#include "ops/common/hard_swish_steps.h"
#include "ops/common/silu_table.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// HardSwishSteps of vectors, to the bit; but NaN gives 0 or NaN.
class HardSwishVector {
 public:
  static constexpr bool kIsExact = true;  ///< must its argument be rounded as the reference does?

  HWY_INLINE explicit HardSwishVector(float step) : numbers_(step) {}

  static bool serves(float step) { return HardSwishSteps::serves(step); }

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    // The second operand takes the place of NaN on x86.
    const V limited = hn::Max(x, hn::Set(d, HardSwishSteps::kLeast));
    return hn::Mul(limited, factor(d, hn::Min(limited, hn::Set(d, HardSwishSteps::kLinear))));
  }

  /// The same of finite numbers.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V of_finite(D d, V x) const {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
    // At kLeast the factor is exactly 0.
    constexpr int kLesserMagnitude = 0b0010;  // with the sign of x
    return hn::Mul(x, factor(d, V{_mm512_range_ps(x.raw, hn::Set(d, HardSwishSteps::kLinear).raw, kLesserMagnitude)}));
#else
    return (*this)(d, x);
#endif
  }

 private:
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V factor(D d, V limited) const {
    return hn::Add(hn::Mul(limited, hn::Set(d, numbers_.slope)), hn::Set(d, numbers_.offset));
  }

  HardSwishSteps numbers_;  // not vectors: the compiler's own constructors know nothing of the instruction set
};

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
/// silu(x) / step by SiluTable, whose pieces fill two registers each: half as many instructions as an exponential
/// takes. NaN gives 0.
class SiluVector {
 public:
  static constexpr bool kIsExact = false;

  HWY_INLINE explicit SiluVector(float step) : steps_(1.0F / step) {
    const __m512 steps = _mm512_set1_ps(steps_);
    for (int i = 0; i < 3; ++i)
      for (int half = 0; half < 2; ++half)
        _mm512_store_ps(c_[i][half], _mm512_mul_ps(_mm512_load_ps(kSiluTable.c[i] + half * kHalf), steps));
  }

  /// Is the table's error at most a 32nd of a step?
  static bool serves(float step) { return step >= 32 * SiluTable::kError; }

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    constexpr float kNearest = 0x1.8p23F;  // added, it leaves the nearest integer in the lowest bits
    constexpr auto kLast = static_cast<float>((SiluTable::kPieces - 1) * SiluTable::kWidth);
    constexpr auto kPiecesPerUnit = static_cast<float>(1 / SiluTable::kWidth);
    constexpr int kLesserMagnitude = 0b1010;
    // NaN takes the last piece, and its maximum is the second operand.
    const V a = V{_mm512_range_ps(x.raw, hn::Set(d, kLast).raw, kLesserMagnitude)};
    const V index = hn::MulAdd(a, hn::Set(d, kPiecesPerUnit), hn::Set(d, kNearest));
    const V negative = hn::MulAdd(hn::MulAdd(piece(2, index), a, piece(1, index)), a, piece(0, index));
    return hn::MulAdd(hn::Max(x, hn::Zero(d)), hn::Set(d, steps_), negative);
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V of_finite(D d, V x) const {
    return (*this)(d, x);
  }

 private:
  static constexpr int kHalf = SiluTable::kPieces / 2;

  template <class V>
  HWY_INLINE V piece(int i, V index) const {
    const __m512 low = _mm512_load_ps(c_[i][0]);
    return V{_mm512_permutex2var_ps(low, _mm512_castps_si512(index.raw), _mm512_load_ps(c_[i][1]))};
  }

  alignas(64) float c_[3][2][kHalf];  ///< the table's, in steps
  float steps_;                       ///< in 1
};
#endif

/// Calls run(f), f(d, x) being activation(x) / output_scale of a vector, and NaN nowhere or what nearest_in_range makes
/// 0, and f.of_finite(d, x) the same of finite numbers; or gives false where there is no short way.
template <class Run>
HWY_INLINE bool with_short_steps(const AffineScaler& scaler, Run run) {
  const UnaryFunction function = scaler.activation.function;
  if (function == UnaryFunction::kHardSwish && HardSwishVector::serves(scaler.output_scale)) {
    run(HardSwishVector(scaler.output_scale));
    return true;
  }
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if (function == UnaryFunction::kSilu && SiluVector::serves(scaler.output_scale)) {
    run(SiluVector(scaler.output_scale));
    return true;
  }
#endif
  return false;
}

/// Has it one?
inline bool has_short_steps(const AffineScaler& scaler) {
  return with_short_steps(scaler, [](const auto& /*steps*/) {});
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
