// The kernels of conv_transpose2d_affine behind its variants table in conv_transpose2d_affine.cpp. Dense operands.
#pragma once

#include "ops/nn/conv_transpose2d_affine/conv_transpose2d_affine.h"

namespace bantam::ops::conv_transpose2d_affine {

Status run_reference(const Invocation& call);

/// Constant weights that reach every output, packed phase by phase (nn/conv_transpose2d/phases.h).
bool gemm_supports(const OpCall& call);
Footprint gemm_footprint(const OpCall& call, int threads);
std::int64_t gemm_packed_bytes(const OpCall& call, int input);
void gemm_pack(const OpCall& call, int input, std::byte* destination);
Status run_gemm(const Invocation& call);

/// Constant weights of few outputs and one constant zero point, packed for all phases at once
/// (nn/conv_transpose2d/integer_columns.h).
bool columns_supports(const OpCall& call);
Footprint columns_footprint(const OpCall& call, int threads);
std::int64_t columns_packed_bytes(const OpCall& call, int input);
void columns_pack(const OpCall& call, int input, std::byte* destination);
Status run_columns(const Invocation& call);

}  // namespace bantam::ops::conv_transpose2d_affine
