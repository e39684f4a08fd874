// The kernels of lookup8 behind its variants table in lookup8.cpp.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

/// Contiguous rows.
bool supports_lookup8_simd(const OpCall& call);
Status run_lookup8_simd(const Invocation& invocation);

}  // namespace bantam::ops
