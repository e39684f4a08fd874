// The kernels of norm behind its variants table in norm.cpp. Dense operands; the result may be the operand.
#pragma once

#include "ops/nn/norm/norm.h"

namespace bantam::ops::norm {

Status run_reference(const Invocation& call);

/// f32, axes that lie side by side; scale and bias, where given, list the last of the dimensions before them, the first
/// of them, or those behind them.
bool supports_blocks(const OpCall& call);
Status run_blocks(const Invocation& call);

/// f32: groups of channels of channels-last images, whose axes are innermost ones and a run of others before what
/// these leave out; or few long rows. Scale and bias, where given, list the columns (GroupGeometry), or are one number.
bool supports_groups(const OpCall& call);
/// The same where it is faster than blocks, which depends on sizes.
bool prefers_groups(const OpCall& call);
Footprint groups_footprint(const OpCall& call, int threads);
Status run_groups(const Invocation& call);

}  // namespace bantam::ops::norm
