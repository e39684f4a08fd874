// The kernels of `reduce_affine`, for its table of variants, and what they share. Contracts: reduce_affine.h and
// ops/op.h.
#pragma once

#include <cstdint>

#include "ops/op.h"
#include "ops/reduce/reduce_affine/reduce_affine.h"

namespace bantam::ops {

/// What sums of `n` centred elements are multiplied by.
inline float reduce_factor(const ReduceAffineParams& p, std::int64_t n) noexcept {
  return p.x_scale / (p.function == ReduceFunction::kMean ? p.y_scale * static_cast<float>(n) : p.y_scale);
}

Status run_reduce_affine_ref(const Invocation& invocation);

/// Where the innermost reduced or kept elements are contiguous, and sums fit into 32 bits.
bool supports_reduce_affine_simd(const OpCall& call);
Footprint reduce_affine_footprint(const OpCall& call, int threads);
Status run_reduce_affine_simd(const Invocation& invocation);

}  // namespace bantam::ops
