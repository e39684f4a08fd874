// Loops that are unrolled by construction, so that arrays of vectors indexed by their counters live in registers at
// every optimisation level. Included by *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_UNROLL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_UNROLL_INL_H_
#undef BANTAM_OPS_UNROLL_INL_H_
#else
#define BANTAM_OPS_UNROLL_INL_H_
#endif

#include <utility>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

template <typename F, int... kIndices>
HWY_INLINE void unroll_indices(F&& f, std::integer_sequence<int, kIndices...>) {
  (f(std::integral_constant<int, kIndices>{}), ...);
}

/// f(0), f(1) ... f(kCount - 1), each with its own constant.
template <int kCount, typename F>
HWY_INLINE void unroll(F&& f) {
  unroll_indices(f, std::make_integer_sequence<int, kCount>());
}

/// The same vector, in a register: gcc would read a value that several multiply-adds use from memory for each of them.
template <class V>
HWY_INLINE V in_register(V v) {
#if HWY_COMPILER_GCC && !HWY_COMPILER_CLANG && HWY_ARCH_X86
  asm("" : "+v"(v.raw));
#endif
  return v;
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
