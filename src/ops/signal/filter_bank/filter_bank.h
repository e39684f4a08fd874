// Overlapping bands of a power spectrum: bin energies weighted into the band that falls over them and the next one that
// rises. Operands: 0 energies u32 [bins]; 1 falling and 2 rising weights i16 [weights]; per slope 0..bands, i16
// [bands+1]: 3 first bin, 4 first weight, 5 number of bins. Result: u64 [bands]; band b is the falling part of slope
// b+1 and the rising part of slope b. Sums wrap. Exact, as TFLite Micro's SignalFilterBank. Operands are dense. A slope
// that reaches outside bins or weights is reported while running (kOutOfRange).
#pragma once

#include "ops/op.h"

namespace bantam::ops {

extern const OpDef kFilterBank;  // "filter_bank". Accuracy: exact

}  // namespace bantam::ops
