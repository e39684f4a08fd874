// Stores results with the activations that cost nothing; others follow in activate_rows.h. Included by *_simd.cpp files
// inside Highway's per-target compilation.
#if defined(BANTAM_OPS_CLAMPED_STORE_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_CLAMPED_STORE_SIMD_INL_H_
#undef BANTAM_OPS_CLAMPED_STORE_SIMD_INL_H_
#else
#define BANTAM_OPS_CLAMPED_STORE_SIMD_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"
#include "ops/elementwise/unary/activation_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Stores vectors of results, limited to the range of relu or clip: these two cost nothing and need no second pass.
class ClampedStore {
 public:
  explicit ClampedStore(const Activation& activation) {
    complete_ = activation.function == UnaryFunction::kIdentity;
    if (activation.function == UnaryFunction::kRelu) {
      limit(0.0F, std::numeric_limits<float>::infinity());
    } else if (activation.function == UnaryFunction::kClip) {
      limit(activation.a, activation.b);
    }
  }

  /// True when stored values are final; otherwise activate_rows must follow.
  bool complete() const { return complete_; }

  /// True when `limited` may change anything.
  bool clamps() const { return clamps_; }

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V limited(D d, V v) const {
    return clamps_ ? clip_f32(d, v, hn::Set(d, low_), hn::Set(d, high_)) : v;
  }

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE void operator()(D d, V v, float* to) const {
    hn::StoreU(limited(d, v), d, to);
  }

 private:
  void limit(float low, float high) {
    complete_ = clamps_ = true;
    low_ = low;
    high_ = high;
  }

  bool complete_ = false;
  bool clamps_ = false;
  float low_ = 0.0F;
  float high_ = 0.0F;
};

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
