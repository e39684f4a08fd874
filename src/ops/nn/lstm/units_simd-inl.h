// Vectors of hidden units, for the kernels of lstm and gru. Included by their *_simd.cpp files inside Highway's
// per-target compilation.
#if defined(BANTAM_OPS_UNITS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_UNITS_SIMD_INL_H_
#undef BANTAM_OPS_UNITS_SIMD_INL_H_
#else
#define BANTAM_OPS_UNITS_SIMD_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "ops/common/math_simd-inl.h"
#include "ops/nn/lstm/units.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

/// min(max(x, -limit), limit); 0 means no limit.
template <class D, class V>
HWY_INLINE V clip_units(D d, V x, float limit) {
  return limit == 0.0F ? x : at_most(d, at_least(d, x, hn::Set(d, -limit)), hn::Set(d, limit));
}

/// Calls f(u, count) for the blocks of units in [first, last), whole blocks (units.h). Those of a panel are whole
/// vectors, whose number the compiler knows.
template <class F>
HWY_INLINE void for_each_block(std::size_t hidden, std::size_t first, std::size_t last, F f) {
  constexpr std::size_t kPanelUnits = gemm::kPanel;
  if (rnn::block_units(static_cast<std::int64_t>(hidden)) != gemm::kPanel) return f(first, last - first);
  for (std::size_t u = first; u < last; u += kPanelUnits) f(u, kPanelUnits);
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
