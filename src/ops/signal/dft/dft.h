// Discrete Fourier transforms of one signal or of its overlapping frames, any length (mixed radix; a prime factor p of
// the length N costs N p operations).
//
// Operands: 0 x [B,L,C], f32 or f64, C = 1 for real, 2 for complex numbers (real part first); 1 twiddles [N,2] of the
// same type: cos(2 pi k / N), -sin(2 pi k / N), a table that models share; 2 window [W] of the same type (optional,
// frames only). Result: [B,F,K,2], or [B,F,N,1] for a real signal from half a spectrum.
//
//   step = 0: F = 1, the signal is cut or padded with zeros to N. No window.
//   step > 0: frame f is x[f step ... f step + W), times the window, padded with zeros to N; F = 1 + (L - W) / step, 0
//             where L < W. W is the window's length, or N.
//
// Forward: y[k] = sum of x[n] e^(-2 pi i k n / N); K = N, or N / 2 + 1 with `onesided`, which needs a real x. Inverse:
// the other sign, divided by N; with `onesided` x is the first half of the spectrum of a real signal. Dense operands.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct DftParams {
  std::int32_t length = 1;  ///< N
  std::int32_t step = 0;
  std::int32_t inverse = 0;
  std::int32_t onesided = 0;
};

extern const OpDef kDft;  // "dft". Accuracy: consistent

}  // namespace bantam::ops
