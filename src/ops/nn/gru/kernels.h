// The kernels of gru behind its variants table in gru.cpp. Dense operands; y_h holds the running state.
#pragma once

#include "ops/nn/gru/gru.h"
#include "ops/nn/lstm/rnn.h"

namespace bantam::ops::gru {

inline constexpr int kGates = 3;       ///< update, reset, hidden
inline constexpr int kMixedGates = 2;  ///< of units that lie together (nn/lstm/units.h): update, reset

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

/// Needs activations with vector forms and constant w, r and, where it is given, b, which is packed as rnn::Biases
/// says. w is packed in panels (nn/gemm/gemm_f32.h), direction after direction; r in two matrices per direction, since
/// the hidden gate's share is computed apart from that of update and reset.
bool supports_packed(const OpCall& call);
Footprint packed_footprint(const OpCall& call, int threads);
/// `type` is f32, or what w and r are narrowed to (nn/gemm/narrow_panels.h).
std::int64_t packed_bytes(const OpCall& call, int input, ElementType type);
void pack(const OpCall& call, int input, ElementType type, std::byte* destination);
void restore(const OpCall& call, int input, ElementType type, const std::byte* packed, float* elements);
Status run_packed(const Invocation& call, ElementType type);

}  // namespace bantam::ops::gru
