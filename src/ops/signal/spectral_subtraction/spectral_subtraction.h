// Noise reduction in bands: a smoothed estimate of each band's noise is subtracted, but never more than leaves a given
// share of the signal. Operands: 0 bands u32 [n]; 1 the estimate so far u32 [n]. Results: 0 the bands less noise, 1 the
// new estimate. Bands of even index use `smoothing`, odd ones `alternate_smoothing`; shares are of 2^share_bits:
//   estimate' = ((x << smoothing_bits) * smoothing + estimate * one_minus_smoothing) >> share_bits
//   y = max(((x << smoothing_bits) - min(estimate', x << smoothing_bits)) >> smoothing_bits,
//           x * min_signal_remaining >> share_bits)
// `clamping` keeps the estimate below the signal. Products have 64 bits, results wrap to 32. Exact, as TFLite Micro's
// SignalFilterBankSpectralSubtraction. Operands are dense.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct SpectralSubtractionParams {
  std::int32_t smoothing = 0;  ///< this and the shares below are not negative
  std::int32_t one_minus_smoothing = 0;
  std::int32_t alternate_smoothing = 0;
  std::int32_t alternate_one_minus_smoothing = 0;
  std::int32_t min_signal_remaining = 0;
  std::int32_t smoothing_bits = 0;  ///< 0..31
  std::int32_t share_bits = 0;      ///< 0..31
  std::int32_t clamping = 0;
};

extern const OpDef kSpectralSubtraction;  // "spectral_subtraction". Accuracy: exact

}  // namespace bantam::ops
