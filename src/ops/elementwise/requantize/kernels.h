// The kernels of `requantize`, for its table of variants. Contracts: requantize.h and ops/op.h.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

Status run_requantize_ref(const Invocation& invocation);

/// The part of the reference from i8 or u8 to i8 or u8: a small core need not carry the other types.
bool supports_requantize_i8_portable(const OpCall& call);
Status run_requantize_i8_portable(const Invocation& invocation);

/// i8 or u8 to i8 or u8, contiguous rows.
bool supports_requantize_i8_simd(const OpCall& call);
Status run_requantize_i8_simd(const Invocation& invocation);

}  // namespace bantam::ops
