// The kernel of max_pool_indices behind its variants table in max_pool_indices.cpp.
#pragma once

#include "ops/common/window.h"
#include "ops/nn/max_pool_indices/max_pool_indices.h"

namespace bantam::ops::max_pool_indices {

inline WindowAxis window_axis(const MaxPoolIndicesParams& p, int i) noexcept {
  return {p.kernel[i], p.strides[i], p.dilations[i], p.before[i], p.after[i]};
}

Status run_reference(const Invocation& call);

}  // namespace bantam::ops::max_pool_indices
