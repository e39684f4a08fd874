// The kernels of max_pool_indices behind its variants table in max_pool_indices.cpp.
#pragma once

#include "ops/common/window.h"
#include "ops/nn/max_pool_indices/max_pool_indices.h"

namespace bantam::ops::max_pool_indices {

inline WindowAxis window_axis(const MaxPoolIndicesParams& p, int i) noexcept {
  return {p.kernel[i], p.strides[i], p.dilations[i], p.before[i], p.after[i]};
}

/// Windows along two axes of a channel, of which the vertical one may have one position.
struct Windows {
  WindowAxis vertical;
  WindowAxis horizontal;
  std::int64_t height = 1;  ///< of the image
  std::int64_t width = 1;
  std::int64_t rows = 1;  ///< of results
  std::int64_t columns = 1;
  std::int64_t row_step = 1;  ///< from the index of an element to that of the one below
  std::int64_t column_step = 1;
};

Status run_reference(const Invocation& call);

/// f32 along one or two axes; a channel has less than 2^31 elements.
bool supports_simd(const OpCall& call);
Status run_simd(const Invocation& call);

}  // namespace bantam::ops::max_pool_indices
