// Sums, differences and products of quantised operands in steps of the result, without a division. Included by
// *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_NEAREST_STEPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_NEAREST_STEPS_SIMD_INL_H_
#undef BANTAM_OPS_NEAREST_STEPS_SIMD_INL_H_
#else
#define BANTAM_OPS_NEAREST_STEPS_SIMD_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "ops/common/step_bytes_simd-inl.h"
#include "ops/elementwise/binary_affine/binary_affine.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// The quotient v = f(a, b) / y_scale as StepUnits.
///
/// No bytes give |v| above kMostSteps, so that a relative error of 2^-24 is at most 0.24 u. Errors are at most,
/// - of a sum: 0.24 u for both rounded factors, 0.5 u each for the rounded constant and the two sums, which are of its
///   size, and without fused multiply-adds 0.24 u for both rounded products;
/// - of a product: 0.24 u each for the rounded factor and constant of b, for their sum, and without fused multiply-adds
///   for two rounded products, and 0.5 u for the sum in the end;
/// - of v itself, by IEEE 754: 0.24 u for each of three or four operations.
/// All together are less than the 4 u of kGuard.
template <BinaryFunction kFunction>
class NearestSteps : private StepUnits {
 public:
  using V = StepUnits::V;
  using VF = hn::Vec<DF>;

  static constexpr bool kIsDefined = kFunction == BinaryFunction::kAdd || kFunction == BinaryFunction::kSub ||
                                     kFunction == BinaryFunction::kMul || kFunction == BinaryFunction::kPrelu;

  HWY_INLINE explicit NearestSteps(const BinaryAffineParams& p) {
    const double y = p.y_scale;
    const double a = p.a_scale / y;
    const double b = (kFunction == BinaryFunction::kSub ? -1.0 : 1.0) * p.b_scale / y;
    if constexpr (kIsProduct) {
      a_factor_ = hn::Set(DF(), static_cast<float>(p.a_zero_point));
      b_factor_ = hn::Set(DF(), static_cast<float>(a * p.b_scale));
      b_constant_ = hn::Set(DF(), static_cast<float>(-p.b_zero_point * (a * p.b_scale)));
    } else {
      a_factor_ = hn::Set(DF(), static_cast<float>(a));
      b_factor_ = hn::Set(DF(), static_cast<float>(b));
      const double constant = kConstant - (p.a_zero_point * a + p.b_zero_point * b);
      b_constant_ = hn::Set(DF(), static_cast<float>(constant));
    }
    constant_ = hn::Set(DF(), static_cast<float>(kConstant));
    whole_ = hn::Set(DF(), static_cast<float>(a));
    const double factor = kFunction == BinaryFunction::kPrelu ? std::max(1.0, 255.0 * p.b_scale) : 255.0 * p.b_scale;
    const double most = kIsProduct ? 255.0 * a * factor : 255.0 * (a + (b < 0 ? -b : b));
    const auto is_usual = [](float scale) { return scale > 0x1p-60F && scale < 0x1p60F; };
    applies_ = kIsDefined && is_usual(p.a_scale) && is_usual(p.b_scale) && is_usual(p.y_scale) && most <= kMostSteps;
  }

  bool applies() const { return applies_; }

  HWY_INLINE V operator()(V qa, V qb) const { return (*this)(qa, prepared(qb)); }

  /// What b contributes: a factor, or, with the constant, an addend.
  HWY_INLINE VF prepared(V qb) const { return hn::MulAdd(hn::ConvertTo(DF(), qb), b_factor_, b_constant_); }

  HWY_INLINE V operator()(V qa, VF b) const {
    const VF a = hn::ConvertTo(DF(), qa);
    if constexpr (!kIsProduct) return of(hn::MulAdd(a, a_factor_, b));
    const VF centred = hn::Sub(a, a_factor_);
    if constexpr (kFunction == BinaryFunction::kPrelu) b = hn::IfThenElse(hn::Lt(centred, hn::Zero(DF())), b, whole_);
    return of(hn::MulAdd(centred, b, constant_));
  }

 private:
  static constexpr bool kIsProduct = kFunction == BinaryFunction::kMul || kFunction == BinaryFunction::kPrelu;

  VF a_factor_;  // for products the zero point of a
  VF b_factor_;
  VF b_constant_;
  VF constant_;  ///< of products
  VF whole_;     ///< of numbers that prelu leaves as they are
  bool applies_;
};

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
