// Sums, differences and products of quantised operands in steps of the result, without a division. Included by
// *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_NEAREST_STEPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_NEAREST_STEPS_SIMD_INL_H_
#undef BANTAM_OPS_NEAREST_STEPS_SIMD_INL_H_
#else
#define BANTAM_OPS_NEAREST_STEPS_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/operand_row_simd-inl.h"
#include "ops/common/step_bytes_simd-inl.h"
#include "ops/elementwise/binary/binary.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Stored operands q as numbers scale * (q - zero_point). Of sums both scales are in steps of the result, of products
/// one.
struct OperandSteps {
  double a_scale;
  double b_scale;
  std::int32_t a_zero_point;
  std::int32_t b_zero_point;
  bool are_usual;  ///< else nothing applies
};

/// v = f(a, b), in steps of the result, as StepUnits.
///
/// No bytes give |v| above kMostSteps, so that a relative error of 2^-24 is at most 0.24 u. Errors are at most,
/// - of a sum: 0.24 u for both rounded factors, 0.5 u each for the rounded constant and the two sums, which are of its
///   size, and without fused multiply-adds 0.24 u for both rounded products;
/// - of a product: 0.24 u each for the rounded factor and constant of b, for their sum, and without fused multiply-adds
///   for two rounded products, and 0.5 u for the sum in the end;
/// - of v itself, by IEEE 754: 0.24 u for each of three or four operations.
/// All together are less than the 4 u of kGuard.
///
/// kIsFixed: of sums of fixed-point numbers, whose v has no error but what are_usual allows, |v| may be twice as large.
/// Then what is 0.24 u is 0.48 u, and the constant and the first sum may exceed 2048, where they are rounded by 1 u:
/// less than 4 u, too. Sums beyond kMostSteps are units no more, but as a float's bits grow with it, on their side.
template <BinaryFunction kFunction, bool kIsFixed = false>
class NearestSteps : private StepUnits {
 public:
  using V = StepUnits::V;
  using VF = hn::Vec<DF>;

  static constexpr bool kIsDefined = kFunction == BinaryFunction::kAdd || kFunction == BinaryFunction::kSub ||
                                     kFunction == BinaryFunction::kMul || kFunction == BinaryFunction::kPrelu;

  HWY_INLINE explicit NearestSteps(const OperandSteps& p) {
    const double a = p.a_scale;
    const double b = (kFunction == BinaryFunction::kSub ? -1.0 : 1.0) * p.b_scale;
    if constexpr (kIsProduct) {
      a_factor_ = hn::Set(DF(), static_cast<float>(p.a_zero_point));
      b_factor_ = hn::Set(DF(), static_cast<float>(a * b));
      b_constant_ = hn::Set(DF(), static_cast<float>(-p.b_zero_point * (a * b)));
    } else {
      a_factor_ = hn::Set(DF(), static_cast<float>(a));
      b_factor_ = hn::Set(DF(), static_cast<float>(b));
      const double constant = kConstant - (p.a_zero_point * a + p.b_zero_point * b);
      b_constant_ = hn::Set(DF(), static_cast<float>(constant));
    }
    constant_ = hn::Set(DF(), static_cast<float>(kConstant));
    whole_ = hn::Set(DF(), static_cast<float>(a));
    const double factor = kFunction == BinaryFunction::kPrelu ? std::max(1.0, 255.0 * b) : 255.0 * b;
    const double most = kIsProduct ? 255.0 * a * factor : 255.0 * (a + p.b_scale);
    applies_ = kIsDefined && p.are_usual && most <= (kIsFixed ? 2 : 1) * kMostSteps;
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
  static_assert(!(kIsFixed && kIsProduct));

  VF a_factor_;  // for products the zero point of a
  VF b_factor_;
  VF b_constant_;
  VF constant_;  ///< of products
  VF whole_;     ///< of numbers that prelu leaves as they are
  bool applies_;
};

/// Exact's results for four vectors at once, by Steps, a NearestSteps, as long as that is seldom unsure. Exact:
/// operator()(d, a, b) gives the stored values of a vector, steps(a, b) those without zero point and limits, of which
/// what is beyond 16 bits only lies on its side. May be a combine of combine_rows.
template <class Exact, class Steps, typename T>
class GuessedCombine : public Exact {
 public:
  static constexpr std::size_t kVectors = StepBytes<T>::kVectors;

  HWY_INLINE GuessedCombine(const Exact& exact, const OperandSteps& operands, const ByteLimits& limits)
      : Exact(exact), steps_(operands), bytes_(limits), guesses_(steps_.applies()) {}

  /// Of operand b's elements.
  bool prepares() const { return Steps::kIsDefined && steps_.applies(); }
  void prepare(const T* b, std::int64_t n, float* prepared) const {
    const std::int64_t lanes = hn::Lanes(D());
    const OperandRow<T> row{b, true};
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(steps_.prepared(row.load_wide(D(), static_cast<std::size_t>(i))), DF(), prepared + i);
    for (; i < n; ++i) prepared[i] = hn::GetLane(steps_.prepared(hn::Set(D(), b[i])));
  }

  /// b: FourVectors, or PreparedVectors of what `prepare` made of them.
  template <class A, class B>
  HWY_INLINE void store(A a, B b, T* y) {
    V v[kVectors];
    if (Steps::kIsDefined && guesses_.worth_it()) {
      unroll<kVectors>([&](auto i) HWY_ATTR {
        if constexpr (requires { b.prepared(i); }) {
          v[i] = steps_(a(i), b.prepared(i));
        } else {
          v[i] = steps_(a(i), b(i));
        }
      });
      if (bytes_.store_sure(v, y)) return;
      guesses_.failed();
    }
    unroll<kVectors>([&](auto i) HWY_ATTR { v[i] = this->steps(a(i), b(i)); });
    bytes_.store(v, y);
  }

 private:
  using D = StepUnits::D;
  using DF = StepUnits::DF;
  using V = StepUnits::V;

  Steps steps_;
  StepBytes<T> bytes_;
  Guesses guesses_;
};

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
