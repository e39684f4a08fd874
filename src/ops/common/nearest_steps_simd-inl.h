// Sums, differences and products of quantised operands in steps of the result, without a division. Included by
// *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_NEAREST_STEPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_NEAREST_STEPS_SIMD_INL_H_
#undef BANTAM_OPS_NEAREST_STEPS_SIMD_INL_H_
#else
#define BANTAM_OPS_NEAREST_STEPS_SIMD_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

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
  bool b_is_real;  ///< b are no stored operands, but such numbers themselves: their scale and zero point are 1 and 0

  /// What no |a * b| of bytes exceeds, as far as that is known before any b is; of prelu no |a| either.
  double largest_product(BinaryFunction function) const {
    const double b = b_is_real ? 0.0 : 255.0 * b_scale;
    return 255.0 * a_scale * (function == BinaryFunction::kPrelu ? std::max(1.0, b) : b);
  }
  /// The same of |a + b|.
  double largest_sum() const { return 255.0 * (a_scale + (b_is_real ? 0.0 : b_scale)); }
};

/// v = a * b, of prelu a where a is not negative, in steps of the result, as FixedSteps, for many a of each b: what b
/// contributes is made beforehand, a factor in units of each step of a.
///
/// The factor's error is 0.5 unit for its rounding and, of stored b, 255 * 2^-17 for that of unit_, for each of at most
/// 255 steps of a. v itself, by IEEE 754, has an error of 2^-24 of |v| for each of four operations. Both together are
/// less than the guard.
template <BinaryFunction kFunction>
class FactorSteps {
 public:
  using Units = FixedSteps;
  using V = FixedSteps::V;

  HWY_INLINE explicit FactorSteps(const OperandSteps& p)
      : applies_(p.are_usual && p.largest_product(kFunction) <= FixedSteps::kMost),
        a_zero_(hn::Set(D(), p.a_zero_point)),
        b_zero_(hn::Set(D(), p.b_zero_point)),
        constant_(hn::Set(D(), FixedSteps::kConstant)) {
    const double more = FixedSteps::kUnits * (1 << kMoreBits);
    const auto unit = applies_ && !p.b_is_real ? std::llround(p.a_scale * p.b_scale * more) : 0;
    a_units_ = p.a_scale * FixedSteps::kUnits;
    unit_high_ = hn::Set(D(), static_cast<std::int32_t>(unit >> kMoreBits));
    unit_low_ = hn::Set(D(), static_cast<std::int32_t>(unit & ((1 << kMoreBits) - 1)));
    const bool has_whole = applies_ && kFunction == BinaryFunction::kPrelu;
    whole_ = hn::Set(D(), has_whole ? nearest(a_units_) : 0);
  }

  bool applies() const { return applies_; }

  /// The factors that qb make.
  HWY_INLINE V prepared(V qb) const {
    const V b = hn::Sub(qb, b_zero_);
    const V low = hn::Add(hn::Mul(b, unit_low_), hn::Set(D(), 1 << (kMoreBits - 1)));
    return hn::Add(hn::Mul(b, unit_high_), hn::ShiftRight<kMoreBits>(low));
  }

  /// The same of numbers b, of n of them; false if they are too large.
  bool prepare(const float* b, std::int64_t n, std::int32_t* factors) const {
    for (std::int64_t i = 0; i < n; ++i) {
      const double factor = a_units_ * b[i];
      if (!(std::abs(factor) <= FixedSteps::kMost / 255 * FixedSteps::kUnits)) return false;
      factors[i] = nearest(factor);
    }
    return true;
  }

  HWY_INLINE V with(V qa, V factor) const {
    const V a = hn::Sub(qa, a_zero_);
    if constexpr (kFunction == BinaryFunction::kPrelu)
      factor = hn::IfThenElse(hn::Lt(a, hn::Zero(D())), factor, whole_);
    return hn::Add(hn::Mul(a, factor), constant_);
  }

 private:
  using D = FixedSteps::D;

  /// Of unit_, more than of FixedSteps. a * b of single steps is at most kMost / 255^2: with them less than 2^31 units.
  static constexpr int kMoreBits = 16;
  static_assert(FixedSteps::kMost / (255 * 255) * FixedSteps::kUnits * (1 << kMoreBits) < 0x1p31);
  static_assert((0.5 + 255 * 0.5 / (1 << kMoreBits)) * 255 + 4 * 0x1p-24 * FixedSteps::kMostExact * FixedSteps::kUnits <
                FixedSteps::kGuard);

  static std::int32_t nearest(double x) { return static_cast<std::int32_t>(x + (x < 0 ? -0.5 : 0.5)); }

  bool applies_;
  double a_units_;  ///< in a step of a
  V a_zero_;
  V b_zero_;
  V constant_;
  V unit_high_;  ///< of the product of a single step of a and of b
  V unit_low_;
  V whole_;  ///< of prelu: a step of a by itself
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
  using Units = StepUnits;
  using V = StepUnits::V;
  using VF = hn::Vec<DF>;

  static constexpr bool kIsProduct = kFunction == BinaryFunction::kMul || kFunction == BinaryFunction::kPrelu;
  /// The same for many a of each b.
  using Shared = std::conditional_t<kIsProduct, FactorSteps<kFunction>, NearestSteps>;

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
      b_step_ = b;
      addend_ = kConstant - (p.a_zero_point * a + p.b_zero_point * b);
      most_b_ = kMostSteps - 255.0 * a;
      b_constant_ = hn::Set(DF(), static_cast<float>(addend_));
    }
    constant_ = hn::Set(DF(), static_cast<float>(kConstant));
    whole_ = hn::Set(DF(), static_cast<float>(a));
    const double most = kIsProduct ? p.largest_product(kFunction) : p.largest_sum();
    applies_ = kIsDefined && p.are_usual && most <= (kIsFixed ? 2 : 1) * kMostSteps;
  }

  bool applies() const { return applies_; }

  HWY_INLINE V operator()(V qa, V qb) const {
    const VF a = hn::ConvertTo(DF(), qa);
    VF b = hn::MulAdd(hn::ConvertTo(DF(), qb), b_factor_, b_constant_);
    if constexpr (!kIsProduct) return of(hn::MulAdd(a, a_factor_, b));
    const VF centred = hn::Sub(a, a_factor_);
    if constexpr (kFunction == BinaryFunction::kPrelu) b = hn::IfThenElse(hn::Lt(centred, hn::Zero(DF())), b, whole_);
    return of(hn::MulAdd(centred, b, constant_));
  }

  /// Of a sum: what qb contribute, with the constant, as bits of floats, and the sum with it.
  HWY_INLINE V prepared(V qb) const { return of(hn::MulAdd(hn::ConvertTo(DF(), qb), b_factor_, b_constant_)); }
  /// The same of numbers b, of n of them; false if they are too large.
  bool prepare(const float* b, std::int64_t n, std::int32_t* addends) const {
    for (std::int64_t i = 0; i < n; ++i) {
      const double steps = b_step_ * b[i];
      if (!(std::abs(steps) <= most_b_)) return false;
      const auto addend = static_cast<float>(addend_ + steps);
      std::memcpy(addends + i, &addend, sizeof addend);
    }
    return true;
  }
  HWY_INLINE V with(V qa, V addend) const {
    return of(hn::MulAdd(hn::ConvertTo(DF(), qa), a_factor_, hn::BitCast(DF(), addend)));
  }

 private:
  static_assert(!(kIsFixed && kIsProduct));

  VF a_factor_;  // for products the zero point of a
  VF b_factor_;
  VF b_constant_;
  VF constant_;          ///< of products
  VF whole_;             ///< of numbers that prelu leaves as they are
  double b_step_ = 0.0;  ///< of sums: of a single step of b
  double addend_ = 0.0;  ///< of sums: what they get besides a and b
  double most_b_ = 0.0;  ///< of sums: what |b| may be
  bool applies_;
};

/// Exact's results for four vectors at once, by Steps, a NearestSteps, as long as that is seldom unsure. Exact:
/// operator()(d, a, b) gives the stored values of a vector, steps(a, b) those without zero point and limits, of which
/// what is beyond 16 bits only lies on its side. May be a combine of combine_rows.
/// TB is b's type: T, or float, of which only those that many rows of a meet are guessed.
template <class Exact, class Steps, typename T, typename TB>
class GuessedCombine : public Exact {
 public:
  static constexpr std::size_t kVectors = StepBytes<T>::kVectors;

  HWY_INLINE GuessedCombine(const Exact& exact, const OperandSteps& operands, const ByteLimits& limits)
      : Exact(exact), steps_(operands), shared_(operands), bytes_(limits), guesses_(steps_.applies()) {}

  /// Of operand b's elements, which many rows of a meet; false if they are not such that it can.
  bool prepares() const { return Steps::kIsDefined && shared_.applies(); }
  bool prepare(const TB* b, std::int64_t n, std::int32_t* prepared) {
    guesses_ = Guesses(true);
    if constexpr (kIsReal) {
      return shared_.prepare(b, n, prepared);
    } else {
      const std::int64_t lanes = hn::Lanes(D());
      const OperandRow<T> row{b, true};
      std::int64_t i = 0;
      for (; i + lanes <= n; i += lanes)
        hn::StoreU(shared_.prepared(row.load_wide(D(), static_cast<std::size_t>(i))), D(), prepared + i);
      for (; i < n; ++i) prepared[i] = hn::GetLane(shared_.prepared(hn::Set(D(), b[i])));
      return true;
    }
  }

  /// b: FourVectors, or PreparedVectors of what `prepare` made of them.
  template <class A, class B>
  HWY_INLINE void store(A a, B b, T* y) {
    constexpr bool kIsPrepared = requires { b.prepared(0); };
    V v[kVectors];
    if (Steps::kIsDefined && (kIsPrepared || (!kIsReal && steps_.applies())) && guesses_.worth_it()) {
      if constexpr (kIsPrepared) {
        unroll<kVectors>([&](auto i) HWY_ATTR { v[i] = shared_.with(a(i), b.prepared(i)); });
        if (bytes_.template store_sure<typename Steps::Shared::Units>(v, y)) return;
      } else if constexpr (!kIsReal) {
        unroll<kVectors>([&](auto i) HWY_ATTR { v[i] = steps_(a(i), b(i)); });
        if (bytes_.template store_sure<typename Steps::Units>(v, y)) return;
      }
      guesses_.failed();
    }
    unroll<kVectors>([&](auto i) HWY_ATTR { v[i] = this->steps(a(i), b(i)); });
    bytes_.store(v, y);
  }

 private:
  using D = StepUnits::D;
  using V = StepUnits::V;
  static constexpr bool kIsReal = std::is_same_v<TB, float>;

  Steps steps_;
  typename Steps::Shared shared_;
  StepBytes<T> bytes_;
  Guesses guesses_;
};

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
