// The inner part of conv2d's f32 matrix kernel (conv2d_simd.cpp), for the kernel that brings panels of its own: weights
// that were narrowed and are widened a few panels at a time. Freestanding, re-entrant; scratch is the caller's.
#pragma once

#include "ops/nn/conv2d/problem.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::conv2d {

/// Bytes of the tile of one thread: the least, and with how many it goes fastest.
struct TileBytes {
  std::int64_t least = 0;
  std::int64_t useful = 0;
};

TileBytes gemm_tile_bytes(const OpCall& call);

/// Output pixels [begin, end) of one group for the columns of `weights`, which have all of k. x and y begin at the
/// group's first channel and the first of these columns. `tile` has `floats` floats.
void convolve_gemm(const Problem& p, const float* x, const gemm::RightPanels& weights, const gemm::Result& y,
                   std::int64_t begin, std::int64_t end, float* tile, std::int64_t floats);

}  // namespace bantam::ops::conv2d
