// The kernels of `reduce`, for its table of variants. Contracts: reduce.h and ops/op.h.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

Status run_reduce_ref(const Invocation& invocation);

/// f32 sum, mean, max and min, where the innermost reduced or kept elements are contiguous.
bool supports_reduce_f32_simd(const OpCall& call);
Footprint reduce_footprint(const OpCall& call, int threads);
Status run_reduce_f32_simd(const Invocation& invocation);

/// Wide sums, where the innermost reduced or kept elements are contiguous.
bool supports_wide_sums(const OpCall& call);
Status run_wide_sums(const Invocation& invocation);

}  // namespace bantam::ops
