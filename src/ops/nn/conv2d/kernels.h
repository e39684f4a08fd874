// The kernels of conv2d behind its variants table in conv2d.cpp.
#pragma once

#include "ops/op.h"

namespace bantam::ops::conv2d {

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

}  // namespace bantam::ops::conv2d
