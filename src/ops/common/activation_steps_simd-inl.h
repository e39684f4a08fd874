// Activations of quantised results that take so few instructions that kernels compute them where the sums are, in
// registers; all others: round_activated (activate_rows.h). Included by *_simd.cpp files inside Highway's per-target
// compilation.
#if defined(BANTAM_OPS_ACTIVATION_STEPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_ACTIVATION_STEPS_SIMD_INL_H_
#undef BANTAM_OPS_ACTIVATION_STEPS_SIMD_INL_H_
#else
#define BANTAM_OPS_ACTIVATION_STEPS_SIMD_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/affine_form.h"
#include "ops/common/hard_swish_steps.h"
#include "ops/common/silu_table.h"
#include "ops/nn/gemm/unroll-inl.h"

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

#if (HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86) || HWY_ARCH_ARM_A64
/// silu(x) / step by SiluTable, whose coefficients fill two registers each with AVX-512, else one: half as many
/// instructions as an exponential takes. NaN gives 0.
class SiluVector {
 public:
  static constexpr bool kIsExact = false;

  HWY_INLINE explicit SiluVector(float step) : steps_(1.0F / step) {
    const auto steps = hn::Set(DTable(), steps_);
    for (int i = 0; i <= Table::kDegree; ++i)
      for (int part = 0; part < Table::kPieces; part += kLanes)
        hn::Store(hn::Mul(hn::Load(DTable(), kSiluTable<Table>.c[i] + part), steps), DTable(), c_[i] + part);
  }

  /// Is the table's error at most a 32nd of a step?
  static bool serves(float step) { return step >= 32 * Table::kError; }

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    const V a = limited_magnitude(x);
    const auto place = place_of(a);
    V negative = piece(Table::kDegree, place);
    unroll<Table::kDegree>([&](auto i)
                               HWY_ATTR { negative = hn::MulAdd(negative, a, piece(Table::kDegree - 1 - i, place)); });
    // NaN takes the last piece, and its maximum is the second operand.
    return hn::MulAdd(hn::Max(x, hn::Zero(d)), hn::Set(d, steps_), negative);
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V of_finite(D d, V x) const {
    return (*this)(d, x);
  }

 private:
#if HWY_ARCH_ARM_A64
  using Table = SiluTable<DoublingPieces, 5>;
  using DTable = hn::CappedTag<float, 4>;
#elif HWY_TARGET <= HWY_AVX3
  using Table = SiluTable<EqualPieces, 2>;
  using DTable = hn::CappedTag<float, 16>;
#else
  using Table = SiluTable<HalvedDoublingPieces, 3>;
  using DTable = hn::CappedTag<float, 8>;
#endif
  using VTable = hn::Vec<DTable>;
  static constexpr int kLanes = hn::MaxLanes(DTable());

  static HWY_INLINE VTable limited_magnitude(VTable x) {
    const auto last = hn::Set(DTable(), Table::kLast);
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
    constexpr int kLesserMagnitude = 0b1010;  // without the sign
    return VTable{_mm512_range_ps(x.raw, last.raw, kLesserMagnitude)};
#else
    return hn::Min(hn::Abs(x), last);
#endif
  }

#if HWY_ARCH_ARM_A64
  /// Places of the four bytes of each number's piece: it is the exponent of a + 1, below which lie 23 bits.
  static HWY_INLINE uint8x16_t place_of(VTable a) {
    constexpr std::uint32_t kEach = 0x04040404;
    constexpr std::uint32_t kFirst = 0x03020100 - 127 * kEach;
    const VTable above_one = hn::Add(a, hn::Set(DTable(), 1.0F));
    const uint32x4_t exponent = vshrq_n_u32(vreinterpretq_u32_f32(above_one.raw), 23);
    return vreinterpretq_u8_u32(vmlaq_u32(vdupq_n_u32(kFirst), exponent, vdupq_n_u32(kEach)));
  }
  HWY_INLINE VTable piece(int i, uint8x16_t place) const {
    return VTable{vreinterpretq_f32_u8(vqtbl1q_u8(vreinterpretq_u8_f32(vld1q_f32(c_[i])), place))};
  }
#elif HWY_TARGET <= HWY_AVX3
  /// The nearest middle of a piece in the lowest bits.
  static HWY_INLINE __m512i place_of(VTable a) {
    constexpr auto kPiecesPerUnit = static_cast<float>(1 / Table::kWidth);
    constexpr float kNearest = 0x1.8p23F;  // added, it leaves the nearest integer there
    return _mm512_castps_si512(hn::MulAdd(a, hn::Set(DTable(), kPiecesPerUnit), hn::Set(DTable(), kNearest)).raw);
  }
  HWY_INLINE VTable piece(int i, __m512i place) const {
    return VTable{_mm512_permutex2var_ps(_mm512_load_ps(c_[i]), place, _mm512_load_ps(c_[i] + kLanes))};
  }
#else
  /// The exponent of a + 1 and the first bit behind its point in the lowest bits.
  static HWY_INLINE __m256i place_of(VTable a) {
    return _mm256_srli_epi32(_mm256_castps_si256(hn::Add(a, hn::Set(DTable(), 1.0F)).raw), 22);
  }
  HWY_INLINE VTable piece(int i, __m256i place) const {
    return VTable{_mm256_permutevar8x32_ps(_mm256_load_ps(c_[i]), place)};
  }
#endif

  alignas(64) float c_[Table::kDegree + 1][Table::kPieces];  ///< the table's, in steps
  float steps_;                                              ///< in 1
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
#if (HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86) || HWY_ARCH_ARM_A64
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
