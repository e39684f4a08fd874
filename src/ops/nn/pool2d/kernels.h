// The kernels of pool2d behind its variants table in pool2d.cpp.
#pragma once

#include "ops/op.h"

namespace bantam::ops::pool {

Status run_reference(const Invocation& call);

}  // namespace bantam::ops::pool
