// Squared magnitudes of a 16-bit spectrum. Operand 0: i16 [2 n], real and imaginary parts in turn; result: u32 [n],
// re^2 + im^2 of the bins [begin, end) and 0 for the others. Exact, as TFLite Micro's SignalEnergy, which leaves the
// other bins as they are. Operands are dense.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct SpectrumEnergyParams {
  std::int32_t begin = 0;
  std::int32_t end = 0;  ///< begin..n
};

extern const OpDef kSpectrumEnergy;  // "spectrum_energy". Accuracy: exact

}  // namespace bantam::ops
