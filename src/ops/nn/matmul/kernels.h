// The kernels of matmul behind its variants table in matmul.cpp.
#pragma once

#include "ops/op.h"

namespace bantam::ops::matmul {

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

}  // namespace bantam::ops::matmul
