// The kernels of resize behind its variants table in resize.cpp. Dense operands.
#pragma once

#include "ops/nn/resize/resize.h"

namespace bantam::ops::resize {

Status run_reference(const Invocation& call);

/// Nearest of any type; linear and cubic on f32 with at most three resampled axes. No antialias, no crop_and_resize.
bool supports_rows(const OpCall& call);
Footprint rows_footprint(const OpCall& call, int threads);
Status run_rows(const Invocation& call);

}  // namespace bantam::ops::resize
