// The kernels of `dequantize` behind its table of variants. Contracts: dequantize.h and ops/op.h.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

/// Of i8 or u8 with one scale for the whole tensor; contiguous rows.
bool supports_dequantize_i8_simd(const OpCall& call);
Status run_dequantize_i8_simd(const Invocation& invocation);

}  // namespace bantam::ops
