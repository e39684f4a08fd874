// The kernels of `unary`, for its table of variants. Contracts: unary.h and ops/op.h.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

Status run_unary_ref(const Invocation& invocation);

/// The part of the reference that is f32 throughout: a small core need not carry the other types.
bool supports_unary_f32_portable(const OpCall& call);
Status run_unary_f32_portable(const Invocation& invocation);

/// f32, every function with a vector form; any strides.
bool supports_unary_f32_simd(const OpCall& call);
Status run_unary_f32_simd(const Invocation& invocation);

}  // namespace bantam::ops
