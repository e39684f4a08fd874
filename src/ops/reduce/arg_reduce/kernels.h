// The vector kernel of arg_reduce, for its table of variants.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

/// The first extremum of dense f32 and i32.
bool supports_arg_reduce_simd(const OpCall& call);
Status run_arg_reduce_simd(const Invocation& invocation);

}  // namespace bantam::ops
