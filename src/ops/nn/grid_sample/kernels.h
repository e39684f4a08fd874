// The kernel of grid_sample behind its variants table in grid_sample.cpp.
#pragma once

#include "ops/nn/grid_sample/grid_sample.h"

namespace bantam::ops::grid_sample {

Status run_reference(const Invocation& call);

}  // namespace bantam::ops::grid_sample
