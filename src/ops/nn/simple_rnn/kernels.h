// The kernels of simple_rnn behind its variants table in simple_rnn.cpp. Dense operands; y_h holds the running state.
#pragma once

#include "ops/nn/lstm/rnn.h"
#include "ops/nn/simple_rnn/simple_rnn.h"

namespace bantam::ops::simple_rnn {

inline constexpr int kGates = 1;

/// y_h may take the place of h0.
inline void allow_state_in_place(const OpCall& call, Footprint* footprint) noexcept {
  if (call.has(rnn::kInitialH)) footprint->overwrites[1] = std::uint64_t{1} << rnn::kInitialH;
}

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

/// Needs constant w, r and, where it is given, b. w and r are packed in panels (nn/gemm/gemm_f32.h), direction after
/// direction, b as rnn::Biases says.
bool supports_packed(const OpCall& call);
Footprint packed_footprint(const OpCall& call, int threads);
std::int64_t packed_bytes(const OpCall& call, int input);
void pack(const OpCall& call, int input, std::byte* destination);
Status run_packed(const Invocation& call);

}  // namespace bantam::ops::simple_rnn
