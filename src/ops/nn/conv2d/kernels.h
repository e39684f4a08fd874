// The kernels of conv2d behind its variants table in conv2d.cpp.
#pragma once

#include "ops/op.h"
#include "ops/packed_weights.h"

namespace bantam::ops::conv2d {

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

/// int8, one group, dense weights; for small cores.
bool portable_supports(const OpCall& call);
Footprint portable_footprint(const OpCall& call, int threads);
Status run_portable(const Invocation& call);

/// f32.
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

/// f32, several groups that are narrow enough (narrow_groups.h).
bool narrow_groups_supports(const OpCall& call);
Footprint narrow_groups_footprint(const OpCall& call, int threads);
std::int64_t narrow_groups_packed_bytes(const OpCall& call);
void narrow_groups_pack(const OpCall& call, const Threads& threads, std::byte* destination);
Status run_narrow_groups(const Invocation& call);

inline constexpr PackingKernel kNarrowGroups{.supports = narrow_groups_supports,
                                             .footprint = narrow_groups_footprint,
                                             .packed_bytes = narrow_groups_packed_bytes,
                                             .pack = narrow_groups_pack,
                                             .run = run_narrow_groups,
                                             .accuracy = {Accuracy::Kind::kRelative, 1e-5F}};

/// f32, one group, few inputs (few_inputs.h).
bool few_inputs_supports(const OpCall& call);
Footprint few_inputs_footprint(const OpCall& call, int threads);
std::int64_t few_inputs_packed_bytes(const OpCall& call);
void few_inputs_pack(const OpCall& call, const Threads& threads, std::byte* destination);
Status run_few_inputs(const Invocation& call);

inline constexpr PackingKernel kFewInputs{.supports = few_inputs_supports,
                                          .footprint = few_inputs_footprint,
                                          .packed_bytes = few_inputs_packed_bytes,
                                          .pack = few_inputs_pack,
                                          .run = run_few_inputs,
                                          .accuracy = {Accuracy::Kind::kRelative, 1e-5F}};

/// f32, one group, few outputs (few_outputs.h).
bool few_outputs_supports(const OpCall& call);
Footprint few_outputs_footprint(const OpCall& call, int threads);
Status run_few_outputs(const Invocation& call);

/// The same in int8.
bool int8_few_outputs_supports(const OpCall& call);
Status run_int8_few_outputs(const Invocation& call);

/// f32, 3x3, strides of 1 or 2, one group, whole panels of channels, where it pays; constant weights. In tiles of that
/// many rows and columns of results (winograd.h).
bool winograd_supports(const OpCall& call);
template <int kTileResults>
Footprint winograd_footprint(const OpCall& call, int threads);
template <int kTileResults>
std::int64_t winograd_packed_bytes(const OpCall& call, int input);
template <int kTileResults>
void winograd_pack(const OpCall& call, int input, std::byte* destination);
template <int kTileResults>
Status run_winograd(const Invocation& call);

template <int kTileResults>
constexpr KernelVariant winograd_variant(std::string_view name) {
  return {.name = name,
          .supports = winograd_supports,
          .footprint = winograd_footprint<kTileResults>,
          .packed_bytes = winograd_packed_bytes<kTileResults>,
          .pack = winograd_pack<kTileResults>,
          .run = run_winograd<kTileResults>,
          .accuracy = {Accuracy::Kind::kRelative, 3e-5F}};
}

/// f32, constant weights that are narrowed to `type` (nn/gemm/narrow_panels.h); supports what the plain kernel does.
Footprint narrow_footprint(const OpCall& call, int threads);
std::int64_t narrow_packed_bytes(const OpCall& call, int input, ElementType type);
void narrow_pack(const OpCall& call, int input, ElementType type, std::byte* destination);
void narrow_restore(const OpCall& call, int input, ElementType type, const std::byte* packed, float* elements);
Status run_narrow(const Invocation& call, ElementType type);

/// The same on weights in f16, which computes in 16 bits too where the processor does (nn/gemm/gemm_f16.h).
Footprint half_footprint(const OpCall& call, int threads);
Status run_half(const Invocation& call, ElementType type);

/// int8, 3x3, strides 1, one group, whole panels of channels; constant weights (winograd_i8.h).
bool int8_winograd_supports(const OpCall& call);
Footprint int8_winograd_footprint(const OpCall& call, int threads);
std::int64_t int8_winograd_packed_bytes(const OpCall& call, int input);
void int8_winograd_pack(const OpCall& call, int input, std::byte* destination);
Status run_int8_winograd(const Invocation& call);

/// The same in int8.
bool int8_narrow_groups_supports(const OpCall& call);
Footprint int8_narrow_groups_footprint(const OpCall& call, int threads);
std::int64_t int8_narrow_groups_packed_bytes(const OpCall& call, int input);
void int8_narrow_groups_pack(const OpCall& call, int input, std::byte* destination);
Status run_int8_narrow_groups(const Invocation& call);

/// int8 and hybrid, constant weights.
bool int8_supports(const OpCall& call);
Footprint int8_footprint(const OpCall& call, int threads);
std::int64_t int8_packed_bytes(const OpCall& call, int input);
void int8_pack(const OpCall& call, int input, std::byte* destination);
Status run_int8(const Invocation& call);

}  // namespace bantam::ops::conv2d
