// A window over frames of 16-bit samples: y = saturate((x * window) >> shift). Operand 0: i16 [..., m]; operand 1: i16
// [w], w > 0, applied again and again over the elements in row-major order, whose number is a multiple of w. Result: as
// operand 0. Exact, as TFLite Micro's SignalWindow. Operands are dense.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct SignalWindowParams {
  std::int32_t shift = 0;  ///< 0..31
};

extern const OpDef kSignalWindow;  // "signal_window". Accuracy: exact

}  // namespace bantam::ops
