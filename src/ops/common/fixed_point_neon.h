// The two rounding steps of ops/fixed_point.h in 64-bit Arm's own instructions, to the bit. Called by vector kernels
// where they are compiled for NEON; pure.
#pragma once

#if defined(__aarch64__)

#include <arm_neon.h>

namespace bantam::ops::neon {

/// saturating_rounding_doubling_high_mul.
[[gnu::always_inline]] inline int32x4_t high_mul(int32x4_t a, int32x4_t b) noexcept { return vqrdmulhq_s32(a, b); }

/// rounding_divide_by_pot by 2^-n, for each lane's n in [-31, 0], of results of high_mul: none is INT32_MIN.
[[gnu::always_inline]] inline int32x4_t divide_by_power(int32x4_t x, int32x4_t n) noexcept {
  // The instruction rounds ties up; a negative number that is one less has them rounded down.
  return vrshlq_s32(vsraq_n_s32(x, vandq_s32(x, n), 31), n);
}

/// The same where all n are below 0, but for lanes where x is 0.
[[gnu::always_inline]] inline int32x4_t divide_by_real_power(int32x4_t x, int32x4_t n) noexcept {
  return vrshlq_s32(vsraq_n_s32(x, x, 31), n);
}

}  // namespace bantam::ops::neon

#endif
