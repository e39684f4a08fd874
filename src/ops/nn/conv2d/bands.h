// conv2d in f32 where weights are few: a matrix product as in conv2d_simd.cpp, which calls this, but row of results by
// row of results. Where windows leave the image, parts of it are copied with zeros around: every pixel of a part once,
// instead of once per tap of the windows that are gathered. Results are the same to the bit. Freestanding; the copies
// lie in the step's scratch.
#pragma once

#include <cstdint>

#include "ops/nn/conv2d/problem.h"
#include "ops/op.h"

namespace bantam::ops::conv2d {

/// Is it faster than gathering windows, given scratch?
bool bands_apply(const Problem& p);

/// Scratch of one thread with which it is fastest. Requires bands_apply.
std::int64_t bands_useful_bytes(const Problem& p);

/// Computes the result of `call`, whose problem is `p`, unless the scratch holds the windows of too few pixels: false
/// then. Requires bands_apply, weights packed as gemm_pack does, and, of a result that overlaps x, what
/// Footprint::lead_bytes says of as many pixels at a time as a row of results or gemm::kMaxTileRows.
bool run_bands(const Invocation& call, const Problem& p);

}  // namespace bantam::ops::conv2d
