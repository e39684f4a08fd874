// The kernel of deform_conv2d behind its variants table in deform_conv2d.cpp.
#pragma once

#include "ops/nn/deform_conv2d/deform_conv2d.h"

namespace bantam::ops::deform_conv2d {

Footprint footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

}  // namespace bantam::ops::deform_conv2d
