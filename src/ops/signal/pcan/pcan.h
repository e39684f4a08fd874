// Per-channel amplitude normalisation: each band times the gain that its noise estimate asks for, with small ratios
// suppressed. Operands: 0 bands u32; 1 noise estimates u32, same shape; 2 gain table i16 [signal::kGainEntries or
// more]. Result: u32, operand 0's shape: shrink_ratio(x * gain >> shift), see signal/fixed_point_levels.h. Exact, as
// TFLite Micro's SignalPCAN. Operands are dense.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct PcanParams {
  std::int32_t shift = 0;  ///< 0..63
};

extern const OpDef kPcan;  // "pcan". Accuracy: exact

}  // namespace bantam::ops
