// conv2d in f32 where windows leave the image: a matrix product as in conv2d_simd.cpp, which calls this, but zone by
// zone of results whose windows have the same taps inside the image. Taps outside are neither gathered as zeros nor
// multiplied, and windows are read where they lie, so that it needs no scratch. Where weights are many, it goes tap by
// tap instead: a tap's weights, a part of them at a time, or those of a few taps that touch, meet all results that have
// them inside while they stay in the second-level cache, so that each is read from memory once. Results are the same to
// the bit.
// Freestanding, re-entrant.
#pragma once

#include <cstdint>

#include "ops/nn/conv2d/problem.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::conv2d {

/// Are the products of a zone long enough, so that it costs little to stop and go on between rows or taps of a kernel?
bool zones_apply(const Problem& p);

/// Result rows [begin, end) of one group, counted through all items, for the columns of `weights`. x and y begin at
/// the group's first channel; these rows lie over nothing that their windows read. Requires zones_apply.
void convolve_zones(const Problem& p, const float* x, const gemm::RightPanels& weights, const gemm::Result& y,
                    std::int64_t begin, std::int64_t end);

}  // namespace bantam::ops::conv2d
