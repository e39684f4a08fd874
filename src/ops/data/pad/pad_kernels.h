// Kernels of the operator pad, listed in its variants table. Strided operands and results are fine.
#pragma once

#include "ops/data/pad/pad.h"

namespace bantam::ops {

Status run_pad(const Invocation& call);

}  // namespace bantam::ops
