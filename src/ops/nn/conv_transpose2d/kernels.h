// The kernels of conv_transpose2d behind its variants table in conv_transpose2d.cpp. Dense operands.
#pragma once

#include "ops/nn/conv_transpose2d/conv_transpose2d.h"
#include "ops/packed_weights.h"

namespace bantam::ops::conv_transpose2d {

Status run_reference(const Invocation& call);

/// Vectors of channels, each of which is a group of its own. Weights are packed as [vertical taps, horizontal taps,
/// channels], those of few channels several times side by side.
bool depthwise_supports(const OpCall& call);
std::int64_t depthwise_packed_bytes(const OpCall& call);
void depthwise_pack(const OpCall& call, const Threads& threads, std::byte* destination);
Status run_depthwise(const Invocation& call);

inline constexpr PackingKernel kDepthwise{.supports = depthwise_supports,
                                          .packed_bytes = depthwise_packed_bytes,
                                          .pack = depthwise_pack,
                                          .run = run_depthwise,
                                          .accuracy = {Accuracy::Kind::kRelative, 1e-5F}};

/// Matrix products (nn/gemm/gemm_f32.h). Weights are packed phase by phase: per group, vertical and
/// horizontal phase the panels of a matrix [vertical taps, horizontal taps, group's input channels] x output channels.
/// The scratch holds one batch item with zeros around it.
bool gemm_supports(const OpCall& call);
Footprint gemm_footprint(const OpCall& call, int threads);
std::int64_t gemm_packed_bytes(const OpCall& call);
void gemm_pack(const OpCall& call, const Threads& threads, std::byte* destination);
Status run_gemm(const Invocation& call);

inline constexpr PackingKernel kGemm{.supports = gemm_supports,
                                     .footprint = gemm_footprint,
                                     .packed_bytes = gemm_packed_bytes,
                                     .pack = gemm_pack,
                                     .run = run_gemm,
                                     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}};

/// One matrix product per batch item and a scatter, for a single group. Weights are packed as the panels of a matrix of
/// input channels x [output channels, taps]. The scratch holds the products of a block of input positions.
bool columns_supports(const OpCall& call);
Footprint columns_footprint(const OpCall& call, int threads);
std::int64_t columns_packed_bytes(const OpCall& call);
void columns_pack(const OpCall& call, const Threads& threads, std::byte* destination);
Status run_columns(const Invocation& call);

inline constexpr PackingKernel kColumns{.supports = columns_supports,
                                        .footprint = columns_footprint,
                                        .packed_bytes = columns_packed_bytes,
                                        .pack = columns_pack,
                                        .run = run_columns,
                                        .accuracy = {Accuracy::Kind::kRelative, 1e-5F}};

/// int8 and int16, constant weights that reach every output, packed phase by phase (phases.h).
bool integer_supports(const OpCall& call);
Footprint integer_footprint(const OpCall& call, int threads);
std::int64_t integer_packed_bytes(const OpCall& call, int input);
void integer_pack(const OpCall& call, int input, std::byte* destination);
Status run_integer(const Invocation& call);

/// int8, constant weights of few outputs, packed for all phases at once (integer_columns.h).
bool integer_columns_supports(const OpCall& call);
Footprint integer_columns_footprint(const OpCall& call, int threads);
std::int64_t integer_columns_packed_bytes(const OpCall& call, int input);
void integer_columns_pack(const OpCall& call, int input, std::byte* destination);
Status run_integer_columns(const Invocation& call);

}  // namespace bantam::ops::conv_transpose2d
