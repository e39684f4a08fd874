// The kernels of pool2d behind its variants table in pool2d.cpp.
#pragma once

#include "ops/op.h"

namespace bantam::ops::pool {

Status run_reference(const Invocation& call);

/// f32, i8 and u8; windows of at most 2^15 elements.
bool channels_supports(const OpCall& call);
Status run_channels(const Invocation& call);

/// The same of images of one channel whose rows are dense; windows that see up to 1024 columns.
bool planes_supports(const OpCall& call);
Status run_planes(const Invocation& call);

}  // namespace bantam::ops::pool
