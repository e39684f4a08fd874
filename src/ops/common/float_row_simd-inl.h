// A row of an f32 operand that may be broadcast, where it is known while compiling whether it is. Included by
// *_simd.cpp files inside Highway's per-target compilation; OperandRow (operand_row_simd-inl.h) finds out while it
// runs.
#if defined(BANTAM_OPS_FLOAT_ROW_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_FLOAT_ROW_SIMD_INL_H_
#undef BANTAM_OPS_FLOAT_ROW_SIMD_INL_H_
#else
#define BANTAM_OPS_FLOAT_ROW_SIMD_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "ops/common/rows_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Contiguous, or one element for all.
template <bool kBroadcast>
struct FloatRow {
  const float* data;

  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, std::size_t i) const {
    if constexpr (kBroadcast) {
      return hn::Set(d, *data);
    } else {
      return hn::LoadU(d, data + i);
    }
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load_tail(D d, std::size_t i, std::size_t n) const {
    if constexpr (kBroadcast) {
      return hn::Set(d, *data);
    } else {
      return load_partial(d, data + i, n);
    }
  }
};

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
