// Inner products of int8 rows for cores without wide vectors: some rows of an operand times some rows of weights at
// once, so that every element that is loaded is used several times.
//
//   accumulate_i8<P, O>(x, zero_point, w, n, sums): sums[p][o] += sum over i < n of (x[p][i] - zero_point) * w[o][i]
//
// Zero points are int8, sums wrap. One definition per kind of core: Armv8.1-M vectors, Armv7E-M pairs of halfwords,
// plain C++. All compute the same. Freestanding.
#pragma once

#if defined(__ARM_FEATURE_MVE)
#include "ops/common/dot_i8_mve-inl.h"
#elif defined(__ARM_FEATURE_SIMD32)
#include "ops/common/dot_i8_dsp-inl.h"
#else
#include "ops/common/dot_i8_plain-inl.h"
#endif
