// The kernels of `unary`, for its table of variants. Contracts: unary.h and ops/op.h.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

Status run_unary_ref(const Invocation& invocation);

/// f32, every function with a vector form; any strides.
bool supports_unary_f32_simd(const OpCall& call);
Status run_unary_f32_simd(const Invocation& invocation);

}  // namespace bantam::ops
