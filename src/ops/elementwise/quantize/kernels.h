// The kernels of `quantize`, for its table of variants. Contracts: quantize.h and ops/op.h.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

Status run_quantize_ref(const Invocation& invocation);

/// To i8 or u8 with one scale for the whole tensor; contiguous rows.
bool supports_quantize_i8_simd(const OpCall& call);
Status run_quantize_i8_simd(const Invocation& invocation);

}  // namespace bantam::ops
