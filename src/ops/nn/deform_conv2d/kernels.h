// The kernels of deform_conv2d behind its variants table in deform_conv2d.cpp.
#pragma once

#include "ops/nn/deform_conv2d/deform_conv2d.h"

namespace bantam::ops::deform_conv2d {

Footprint footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

/// Writes the samples of one window, [KH*KW, C]; `position` counts the windows of all images.
void gather(const Invocation& call, std::int64_t position, float* samples);

/// Matrix products on constant weights (nn/gemm/gemm_f32.h), packed group by group as the panels of a matrix [taps,
/// group's channels] x output channels. The scratch holds the samples of a few windows per thread.
bool gemm_supports(const OpCall& call);
Footprint gemm_footprint(const OpCall& call, int threads);
std::int64_t gemm_packed_bytes(const OpCall& call, int input);
void gemm_pack(const OpCall& call, int input, std::byte* destination);
Status run_gemm(const Invocation& call);

}  // namespace bantam::ops::deform_conv2d
