// The kernels of grid_sample behind its variants table in grid_sample.cpp. Dense operands.
#pragma once

#include <algorithm>

#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/grid_sample/grid_sample.h"

namespace bantam::ops::grid_sample {

/// Calls f(begin, end) for ranges of the points of all images.
template <typename F>
void for_each_range(const Invocation& call, F f) {
  const TensorDesc& y = call.out();
  if (y.elements() == 0) return;
  const std::int64_t grain = 1 + 1024 / y.last(0);
  parallel_ranges(*call.threads, elements_between(y, 0, y.rank - 1), grain, f);
}

Status run_reference(const Invocation& call);

/// Vectors of channels; the bits of the reference.
Status run_channels(const Invocation& call);

}  // namespace bantam::ops::grid_sample
