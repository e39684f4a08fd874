// The kernels of lstm_q behind its variants table in lstm_q.cpp, and what they share. Dense operands; y_h and y_c hold
// the running state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ops/common/saturate.h"
#include "ops/fixed_point.h"
#include "ops/fixed_point_i16.h"
#include "ops/nn/lstm_q/lstm_q.h"

namespace bantam::ops::lstm_q {

inline constexpr int kGates = 4;
enum Gate : int { kInputGate = 0, kOutputGate, kForgetGate, kCellGate };
enum Operand : int { kX = 0, kW, kR, kB, kInitialH, kInitialC };

struct Extents {
  std::int64_t steps = 0;   ///< T
  std::int64_t batch = 0;   ///< B
  std::int64_t input = 0;   ///< I
  std::int64_t hidden = 0;  ///< H
};

inline Extents extents_of(const TensorDesc& x, const TensorDesc& r) noexcept {
  return {x.dims[0], x.dims[1], x.dims[2], r.dims[1]};
}

/// The gates of one batch item, before and after their activation.
inline std::int64_t gate_bytes(const Extents& e) noexcept {
  return kGates * e.hidden * static_cast<std::int64_t>(sizeof(std::int16_t));
}

inline std::int16_t saturate16(std::int64_t x) noexcept { return saturate_integer<std::int16_t>(x); }

/// A gate's sum of products in Q12. The sums of int8 products are 32 bits wide, those of int16 64 bits.
inline std::int16_t scaled_sum(std::uint32_t sum, std::int32_t multiplier, std::int32_t shift) noexcept {
  return saturate16(multiply_by_quantized_multiplier(static_cast<std::int32_t>(sum), multiplier, shift));
}
inline std::int16_t scaled_sum(std::uint64_t sum, std::int32_t multiplier, std::int32_t shift) noexcept {
  return saturate16(multiply_wide_by_quantized_multiplier(static_cast<std::int64_t>(sum), multiplier,
                                                          std::min<std::int32_t>(shift, 14)));
}

inline std::int32_t scaled_product(std::int16_t a, std::int16_t b, std::int32_t multiplier,
                                   std::int32_t shift) noexcept {
  return multiply_by_quantized_multiplier(std::int32_t{a} * b, multiplier, shift);
}

/// The new states of one batch item, from the `first` on, from its gates' Q12 sums.
template <typename T>
void update_state(const LstmQParams& p, std::int64_t first, std::int64_t hidden, const std::int16_t* gates, T* h,
                  std::int16_t* c) {
  constexpr ActivationInput16 kFromQ12{};
  const ActivationInput16 from_cell{p.tanh_multiplier, p.tanh_right_shift};
  for (std::int64_t i = first; i < hidden; ++i) {
    const std::int16_t input = logistic_i16(gates[kInputGate * hidden + i], kFromQ12);
    const std::int16_t forget = logistic_i16(gates[kForgetGate * hidden + i], kFromQ12);
    const std::int16_t cell = tanh_i16(gates[kCellGate * hidden + i], kFromQ12);
    const std::int16_t output = logistic_i16(gates[kOutputGate * hidden + i], kFromQ12);
    const std::int16_t kept = saturate16(scaled_product(forget, c[i], p.forget_multiplier, p.forget_shift));
    const std::int16_t added = saturate16(scaled_product(input, cell, p.cell_multiplier, p.cell_shift));
    c[i] = saturate16(kept + added);
    if (p.cell_clip > 0) c[i] = static_cast<std::int16_t>(std::clamp<std::int32_t>(c[i], -p.cell_clip, p.cell_clip));
    const std::int16_t squashed = tanh_i16(c[i], from_cell);
    const std::int64_t scaled = scaled_product(squashed, output, p.hidden_multiplier, p.hidden_shift);
    h[i] = saturate_integer<T>(scaled + p.hidden_zero_point);
  }
}

/// Copies an initial state of that many bytes into its result, unless they share their place.
inline void start_state(const Invocation& call, int input, int output, std::int64_t bytes) noexcept {
  auto* to = call.output<std::byte>(output);
  const auto* from = call.input<std::byte>(input);
  if (to != from && bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

/// Runs the sequence. `compute_gates(x, h, gates)` writes the Q12 sums of one batch item, `update` is update_state from
/// the first state on. The gates come first in the scratch memory.
template <typename T, typename ComputeGates, typename Update>
void run_sequence(const Invocation& call, ComputeGates compute_gates, Update update) {
  const Extents e = extents_of(call.in(kX), call.in(kR));
  start_state(call, kInitialH, 1, call.out(1).bytes());
  start_state(call, kInitialC, 2, call.out(2).bytes());
  const auto row = static_cast<std::size_t>(e.hidden) * sizeof(T);
  if (row == 0) return;
  auto* gates = reinterpret_cast<std::int16_t*>(call.scratch);
  const T* x = call.input<T>(kX);
  T* y = call.output<T>(0);
  for (std::int64_t t = 0; t < e.steps; ++t)
    for (std::int64_t b = 0; b < e.batch; ++b, x += e.input, y += e.hidden) {
      T* h = call.output<T>(1) + b * e.hidden;
      compute_gates(x, h, gates);
      update(call.as<LstmQParams>(), e.hidden, gates, h, call.output<std::int16_t>(2) + b * e.hidden);
      std::memcpy(y, h, row);
    }
}

template <typename T, typename ComputeGates>
void run_sequence(const Invocation& call, ComputeGates compute_gates) {
  run_sequence<T>(call, compute_gates,
                  [](const LstmQParams& p, std::int64_t hidden, const std::int16_t* gates, T* h, std::int16_t* c) {
                    update_state(p, 0, hidden, gates, h, c);
                  });
}

Footprint footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

/// int8 with constant w and r, which are packed in panels (nn/gemm/gemm_i8.h).
bool packed_supports(const OpCall& call);
Footprint packed_footprint(const OpCall& call, int threads);
std::int64_t packed_bytes(const OpCall& call, int input);
void pack(const OpCall& call, int input, std::byte* destination);
Status run_packed(const Invocation& call);

/// int8, for small cores: inner products by dot_i8.h.
bool portable_supports(const OpCall& call);
Status run_portable(const Invocation& call);

}  // namespace bantam::ops::lstm_q
