// The kernels of attention behind its variants table in attention.cpp.
#pragma once

#include "ops/op.h"

namespace bantam::ops::attention {

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

/// What is done to a row of raw products before the softmax; for the kernel in blocks.
struct ScoreRow {
  float* scores;
  std::size_t count;
  const float* bias;  // or null; the element of key 0
  std::int64_t bias_stride;
  const std::uint8_t* mask;  // or null
  std::int64_t mask_stride;
};

Footprint blocks_footprint(const OpCall& call, int threads);
Status run_blocks(const Invocation& call);

}  // namespace bantam::ops::attention
