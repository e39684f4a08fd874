// Applies a fused activation to a block of results in place: the last step of kernels whose inner loops should not know
// every function. Included by *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_ACTIVATE_ROWS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_ACTIVATE_ROWS_SIMD_INL_H_
#undef BANTAM_OPS_ACTIVATE_ROWS_SIMD_INL_H_
#else
#define BANTAM_OPS_ACTIVATE_ROWS_SIMD_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/elementwise/unary/activation_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

/// y[r * stride + c] = activation(y[r * stride + c]) for all rows and columns.
HWY_NOINLINE inline void activate_rows(const Activation& activation, float* y, std::int64_t rows, std::int64_t stride,
                                       std::int64_t columns) {
  if (activation.function == UnaryFunction::kIdentity) return;
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t r = 0; r < rows; ++r, y += stride) {
    std::int64_t c = 0;
    for (; c + lanes <= columns; c += lanes) hn::StoreU(apply_activation(d, hn::LoadU(d, y + c), activation), d, y + c);
    if (c == columns) continue;
    HWY_ALIGN float tail[HWY_MAX_BYTES / sizeof(float)] = {};
    for (std::int64_t i = c; i < columns; ++i) tail[i - c] = y[i];
    hn::Store(apply_activation(d, hn::Load(d, tail), activation), d, tail);
    for (std::int64_t i = c; i < columns; ++i) y[i] = tail[i - c];
  }
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
