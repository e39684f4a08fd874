// The kernels of `binary_affine`, for its table of variants. Contracts: binary_affine.h and ops/op.h.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

Status run_binary_affine_ref(const Invocation& invocation);

/// Results of i8 and u8; rows of the result contiguous, of the operands contiguous or broadcast.
bool supports_binary_affine_i8_simd(const OpCall& call);
Status run_binary_affine_i8_simd(const Invocation& invocation);

}  // namespace bantam::ops
