// The kernel of roi_pool behind its variants table in roi_pool.cpp.
#pragma once

#include "ops/nn/roi_pool/roi_pool.h"

namespace bantam::ops::roi_pool {

Status run_reference(const Invocation& call);

}  // namespace bantam::ops::roi_pool
