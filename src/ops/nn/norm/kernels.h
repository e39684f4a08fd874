// The kernels of norm behind its variants table in norm.cpp. Dense operands; the result may be the operand.
#pragma once

#include "ops/nn/norm/norm.h"

namespace bantam::ops::norm {

Status run_reference(const Invocation& call);

/// f32, axes that lie side by side; scale and bias, where given, list the last of the dimensions before them, the first
/// of them, or those behind them.
bool supports_blocks(const OpCall& call);
Status run_blocks(const Invocation& call);

}  // namespace bantam::ops::norm
