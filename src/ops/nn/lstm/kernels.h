// The kernels of lstm behind its variants table in lstm.cpp. Dense operands; y_h and y_c hold the running state.
#pragma once

#include "ops/nn/lstm/rnn.h"

namespace bantam::ops::lstm {

inline constexpr int kGates = 4;  ///< input, output, forget, cell
inline constexpr int kInitialC = 6;
inline constexpr int kPeepholes = 7;

/// y_h may take the place of h0, y_c that of c0.
inline void allow_state_in_place(const OpCall& call, Footprint* footprint) noexcept {
  if (call.has(rnn::kInitialH)) footprint->overwrites[1] = std::uint64_t{1} << rnn::kInitialH;
  if (call.has(kInitialC)) footprint->overwrites[2] = std::uint64_t{1} << kInitialC;
}

/// Checks the lengths and starts both states of all directions.
inline Status start(const Invocation& call, const rnn::Extents& e) noexcept {
  BANTAM_RETURN_IF_ERROR(rnn::check_lengths(call, e));
  for (std::int64_t d = 0; d < e.directions; ++d) {
    rnn::start_state(call, e, d, rnn::kInitialH, 1);
    rnn::start_state(call, e, d, kInitialC, 2);
  }
  return ok_status();
}

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

/// Needs activations with vector forms and constant operands w, r and, where it is given, b. w and r are packed in
/// panels (nn/gemm/gemm_f32.h), direction after direction, b as rnn::Biases says.
bool supports_packed(const OpCall& call);
Footprint packed_footprint(const OpCall& call, int threads);
/// `type` is f32, or what w and r are narrowed to (nn/gemm/narrow_panels.h).
std::int64_t packed_bytes(const OpCall& call, int input, ElementType type);
void pack(const OpCall& call, int input, ElementType type, std::byte* destination);
void restore(const OpCall& call, int input, ElementType type, const std::byte* packed, float* elements);
Status run_packed(const Invocation& call, ElementType type);

}  // namespace bantam::ops::lstm
