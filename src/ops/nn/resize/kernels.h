// The kernels of resize behind its variants table in resize.cpp. Dense operands.
#pragma once

#include "ops/nn/resize/resize.h"

namespace bantam::ops::resize {

Status run_reference(const Invocation& call);

/// Linear and cubic on f32 with at most two resampled axes and a run of at least four elements behind them, as
/// channels-last images have.
bool supports_rows(const OpCall& call);
Status run_rows(const Invocation& call);

}  // namespace bantam::ops::resize
