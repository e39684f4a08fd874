// The kernels of attention behind its variants table in attention.cpp.
#pragma once

#include "ops/op.h"

namespace bantam::ops::attention {

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

/// One query's scores of a block of keys, for the kernel in blocks.
struct ScoreRow {
  float* all;                   ///< of all keys of the block
  std::size_t padded;           ///< floats there: whole vectors
  std::size_t before;           ///< keys that come before those in sight
  std::size_t count;            ///< keys in sight
  const float* bias = nullptr;  ///< of the first of them, or null
  std::int64_t bias_stride = 0;
  const std::uint8_t* mask = nullptr;  ///< the same
  std::int64_t mask_stride = 0;
};

Footprint blocks_footprint(const OpCall& call, int threads);
Status run_blocks(const Invocation& call);

}  // namespace bantam::ops::attention
