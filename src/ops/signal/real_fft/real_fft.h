// Fourier transform of real signals along the last dimension, and its inverse. Operand 0: i16, i32 or f32; operand 1:
// the constants signal::fill_twiddles of that type, n and direction, [n/2 + n/4, 2]. Forward: [..., length], length <=
// n and padded with zeros, to [..., n+2]: n/2+1 bins of real and imaginary part. Inverse: [..., n+2] to [..., n]. n:
// signal::supports_real_fft. Operands are dense. Fixed point: exact, to the bit as KissFFT computes it; the forward
// result is the transform divided by n, the inverse has no scale. Float: KissFFT's order of operations; the inverse is
// divided by n. Source: signal/real_fft.h.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct RealFftParams {
  std::int32_t n = 0;
  std::int32_t inverse = 0;
};

extern const OpDef kRealFft;  // "real_fft". Accuracy: consistent

}  // namespace bantam::ops
