// The kernels of `cast`, for its table of variants. Contracts: cast.h and ops/op.h.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

Status run_cast_ref(const Invocation& invocation);

/// i8, u8, i32, f16, bf16 and bool to f32; f32 to i8, u8, i32, f16 and bool; contiguous rows.
bool supports_cast_simd(const OpCall& call);
Status run_cast_simd(const Invocation& invocation);

}  // namespace bantam::ops
