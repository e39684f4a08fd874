// The kernels of norm behind its variants table in norm.cpp. Dense operands; the result may be the operand.
#pragma once

#include "ops/nn/norm/norm.h"

namespace bantam::ops::norm {

Status run_reference(const Invocation& call);

/// The innermost dimensions are normalised, and scale and bias, where given, list exactly those.
bool supports_rows(const OpCall& call);
Status run_rows(const Invocation& call);

}  // namespace bantam::ops::norm
