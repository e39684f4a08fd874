// The kernels of depthwise_conv2d behind its variants table in depthwise_conv2d.cpp.
#pragma once

#include "ops/op.h"
#include "ops/packed_weights.h"

namespace bantam::ops::depthwise {

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

/// int8, dense weights; for small cores.
bool portable_supports(const OpCall& call);
Footprint portable_footprint(const OpCall& call, int threads);
Status run_portable(const Invocation& call);

/// f32, multiplier 1, dense weights.
bool float_supports(const OpCall& call);
Footprint channels_footprint(const OpCall& call, int threads);
Status run_float(const Invocation& call);

/// f32, several results per channel, dense weights (nn/conv2d/narrow_groups.h).
bool multiplied_supports(const OpCall& call);
Footprint multiplied_footprint(const OpCall& call, int threads);
std::int64_t multiplied_packed_bytes(const OpCall& call);
void multiplied_pack(const OpCall& call, const Threads& threads, std::byte* destination);
Status run_multiplied(const Invocation& call);

inline constexpr PackingKernel kMultiplied{.supports = multiplied_supports,
                                           .footprint = multiplied_footprint,
                                           .packed_bytes = multiplied_packed_bytes,
                                           .pack = multiplied_pack,
                                           .run = run_multiplied,
                                           .accuracy = {Accuracy::Kind::kRelative, 1e-5F}};

/// The same in int8, constant weights.
bool int8_multiplied_supports(const OpCall& call);
Footprint int8_multiplied_footprint(const OpCall& call, int threads);
std::int64_t int8_multiplied_packed_bytes(const OpCall& call, int input);
void int8_multiplied_pack(const OpCall& call, int input, std::byte* destination);
Status run_int8_multiplied(const Invocation& call);

/// int8, multiplier 1, four channels or more, dense weights.
bool int8_supports(const OpCall& call);
Footprint int8_footprint(const OpCall& call, int threads);
Status run_int8(const Invocation& call);

}  // namespace bantam::ops::depthwise
