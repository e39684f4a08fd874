// The kernels of planar_conv2d behind its variants table in planar_conv2d.cpp.
#pragma once

#include "ops/op.h"

namespace bantam::ops::planar_conv2d {

Status run_reference(const Invocation& call);

/// What conv2d/few_inputs.h fits; constant weights.
bool few_inputs_supports(const OpCall& call);
Footprint few_inputs_footprint(const OpCall& call, int threads);
std::int64_t few_inputs_packed_bytes(const OpCall& call, int input);
void few_inputs_pack(const OpCall& call, int input, std::byte* destination);
Status run_few_inputs(const Invocation& call);

}  // namespace bantam::ops::planar_conv2d
