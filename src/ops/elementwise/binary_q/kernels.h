// The kernels of `binary_q`, for its table of variants. Contracts: binary_q.h and ops/op.h.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

Status run_binary_q_ref(const Invocation& invocation);

/// i8 and u8, no quotients or comparisons; rows of the result contiguous, of the operands contiguous or broadcast.
bool supports_binary_q_i8_simd(const OpCall& call);
Status run_binary_q_i8_simd(const Invocation& invocation);

}  // namespace bantam::ops
