// Division of many numbers by one, for those who round the quotients to integers. Included by *_simd.cpp files inside
// Highway's per-target compilation.
#if defined(BANTAM_OPS_DIVISOR_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DIVISOR_SIMD_INL_H_
#undef BANTAM_OPS_DIVISOR_SIMD_INL_H_
#else
#define BANTAM_OPS_DIVISOR_SIMD_INL_H_
#endif

#include <cmath>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// One divisor, as numbers, not vectors, so that functions may capture it.
///
/// A division of 512 bits takes as long as 20 products. The quotient q by the inverse in two parts is off by little
/// more than half a unit in the last place, so that x - q divisor is a float and q with that remainder times the
/// inverse is the rounded quotient (Markstein 1990; Brisebarre, Muller, Raina 2004), if nothing leaves the normal
/// numbers: divisors beyond 2^-100 and 2^100 divide.
class Divisor {
 public:
  HWY_INLINE explicit Divisor(float divisor) : divisor_(divisor) {
    const float size = std::abs(divisor);
    by_products_ = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3 && size >= 0x1p-100F && size <= 0x1p100F;
    if (!by_products_) return;
    const double inverse = 1.0 / static_cast<double>(divisor);
    inverse_ = static_cast<float>(inverse);
    rest_ = static_cast<float>(inverse - static_cast<double>(inverse_));
  }

  /// x / divisor, to the bit of IEEE 754 where that is a number of size 2^-24 to 2^24 or a NaN; smaller ones are below
  /// 2^-23, larger ones beyond 2^23 on their side.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V quotient(D d, V x) const {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
    if (by_products_) {
      const V product = hn::Mul(x, hn::Set(d, inverse_));
      const V q = hn::MulAdd(x, hn::Set(d, rest_), product);
      const V remainder = hn::NegMulAdd(q, hn::Set(d, divisor_), x);
      const V quotient = hn::MulAdd(remainder, hn::Set(d, inverse_), q);
      // Infinities leave no remainder.
      constexpr int kInfiniteOrNan = 0x99;
      const __mmask16 infinite = _mm512_fpclass_ps_mask(remainder.raw, kInfiniteOrNan);
      return V{_mm512_mask_mov_ps(quotient.raw, infinite, product.raw)};
    }
#endif
    return hn::Div(x, hn::Set(d, divisor_));
  }

 private:
  float divisor_;
  bool by_products_ = false;
  float inverse_ = 0;
  float rest_ = 0;
};

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
