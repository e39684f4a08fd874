// The vector kernel of `select`, for its table of variants.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

/// Rows of the result contiguous, of the operands contiguous or broadcast.
bool supports_select_simd(const OpCall& call);
Status run_select_simd(const Invocation& invocation);

}  // namespace bantam::ops
