// The vector kernel of `multiply_add`, for its table of variants.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

/// Rows of the result and of x contiguous, of the other operands contiguous or broadcast.
bool supports_multiply_add_simd(const OpCall& call);
Status run_multiply_add_simd(const Invocation& invocation);

}  // namespace bantam::ops
