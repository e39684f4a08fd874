// Applies a fused activation to a block of results in place: the last step of kernels whose inner loops should not know
// every function. Included by *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_ACTIVATE_ROWS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_ACTIVATE_ROWS_SIMD_INL_H_
#undef BANTAM_OPS_ACTIVATE_ROWS_SIMD_INL_H_
#else
#define BANTAM_OPS_ACTIVATE_ROWS_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "ops/elementwise/unary/activation_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

/// y[c] = activation(y[c]) for columns from `first` on.
HWY_INLINE void activate_columns(const Activation& activation, float* y, std::int64_t first, std::int64_t columns) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t c = first;
  for (; c + lanes <= columns; c += lanes) hn::StoreU(apply_activation(d, hn::LoadU(d, y + c), activation), d, y + c);
  if (c == columns) return;
  HWY_ALIGN float tail[HWY_MAX_BYTES / sizeof(float)] = {};
  for (std::int64_t i = c; i < columns; ++i) tail[i - c] = y[i];
  hn::Store(apply_activation(d, hn::Load(d, tail), activation), d, tail);
  for (std::int64_t i = c; i < columns; ++i) y[i] = tail[i - c];
}

/// y[r * stride + c] = activation(y[r * stride + c]) for all rows and columns; kVectors vectors of kRows rows at a
/// time.
template <int kRows, int kVectors>
void activate_blocks(const Activation& activation, float* y, std::int64_t rows, std::int64_t stride,
                     std::int64_t columns) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t r = 0; r < rows; r += kRows, y += kRows * stride) {
    const std::int64_t count = std::min<std::int64_t>(kRows, rows - r);
    std::int64_t c = 0;
    for (; count == kRows && c + kVectors * lanes <= columns; c += kVectors * lanes) {
      const auto at = [&](auto i) HWY_ATTR { return y + i / kVectors * stride + c + i % kVectors * lanes; };
      Lockstep<kRows * kVectors, hn::Vec<decltype(d)>> v;
      v.set([&](auto i) HWY_ATTR { return hn::LoadU(d, at(i)); });
      v = apply_activation(d, v, activation);
      unroll<kRows * kVectors>([&](auto i) HWY_ATTR { hn::StoreU(v.v[i], d, at(i)); });
    }
    for (std::int64_t i = 0; i < count; ++i) activate_columns(activation, y + i * stride, c, columns);
  }
}

/// The same in blocks that suit so many columns.
HWY_NOINLINE inline void activate_rows(const Activation& activation, float* y, std::int64_t rows, std::int64_t stride,
                                       std::int64_t columns) {
  if (activation.function == UnaryFunction::kIdentity) return;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  if (columns >= 4 * lanes) return activate_blocks<1, 4>(activation, y, rows, stride, columns);
  activate_blocks<2, 2>(activation, y, rows, stride, columns);
}

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
