// Kernels that want their weights, operand 1, in a layout of their own. Constant weights are packed while compiling;
// weights that the model computes are packed into the step's scratch each time, just before the same kernel runs on
// them. One set of functions makes a variant for either (op.h). Freestanding, re-entrant.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/shape.h"
#include "ops/op.h"

namespace bantam::ops {

/// As the functions of KernelVariant, but of weights alone, which may be constant or not.
struct PackingKernel {
  bool (*supports)(const OpCall& call) = nullptr;
  Footprint (*footprint)(const OpCall& call, int threads) = nullptr;  ///< besides the packed weights; null: none
  std::int64_t (*packed_bytes)(const OpCall& call) = nullptr;
  /// The call has the weights' data. Threads share the work where there is much of it.
  void (*pack)(const OpCall& call, const Threads& threads, std::byte* to) = nullptr;
  Status (*run)(const Invocation& invocation) = nullptr;  ///< operand 1 is packed
  Accuracy accuracy{};
};

namespace packed_weights {

inline constexpr int kWeights = 1;

inline bool are_constant(const OpCall& call) noexcept { return call.inputs[kWeights].data != nullptr; }

template <const PackingKernel& kKernel>
bool supports_constant(const OpCall& call) {
  return are_constant(call) && kKernel.supports(call);
}

template <const PackingKernel& kKernel>
std::int64_t constant_bytes(const OpCall& call, int input) {
  return input == kWeights ? kKernel.packed_bytes(call) : 0;
}

template <const PackingKernel& kKernel>
void pack_constant(const OpCall& call, int /*input*/, std::byte* to) {
  kKernel.pack(call, Threads{}, to);
}

template <const PackingKernel& kKernel>
bool supports_computed(const OpCall& call) {
  return !are_constant(call) && call.in(kWeights).is_dense() && kKernel.supports(call);
}

/// Of the packed weights in front of the kernel's own scratch.
template <const PackingKernel& kKernel>
std::int64_t scratch_bytes(const OpCall& call) {
  return align_up(kKernel.packed_bytes(call), kAlignment);
}

template <const PackingKernel& kKernel>
Footprint computed_footprint(const OpCall& call, int threads) {
  const std::int64_t packed = scratch_bytes<kKernel>(call);
  Footprint footprint = kKernel.footprint != nullptr ? kKernel.footprint(call, threads) : Footprint{};
  footprint.scratch_bytes += packed;
  if (footprint.useful_scratch_bytes > 0) footprint.useful_scratch_bytes += packed;
  return footprint;
}

template <const PackingKernel& kKernel>
Status run_computed(const Invocation& call) {
  constexpr std::size_t kMostInputs = 5;  // of the operators that use this
  Tensor inputs[kMostInputs];
  std::ranges::copy(call.inputs, inputs);
  const OpCall unpacked{call.params, call.inputs, call.outputs};
  const std::int64_t packed = scratch_bytes<kKernel>(unpacked);
  kKernel.pack(unpacked, *call.threads, call.scratch);
  inputs[kWeights].data = call.scratch;
  Invocation on_packed = call;
  on_packed.inputs = {inputs, call.inputs.size()};
  on_packed.scratch += packed;
  on_packed.scratch_bytes -= packed;
  return kKernel.run(on_packed);
}

}  // namespace packed_weights

/// The kernel on constant weights.
template <const PackingKernel& kKernel>
constexpr KernelVariant constant_variant(std::string_view name) {
  return {.name = name,
          .supports = packed_weights::supports_constant<kKernel>,
          .footprint = kKernel.footprint,
          .packed_bytes = packed_weights::constant_bytes<kKernel>,
          .pack = packed_weights::pack_constant<kKernel>,
          .run = kKernel.run,
          .accuracy = kKernel.accuracy};
}

/// The kernel on weights that the model computes.
template <const PackingKernel& kKernel>
constexpr KernelVariant computed_variant(std::string_view name) {
  return {.name = name,
          .supports = packed_weights::supports_computed<kKernel>,
          .footprint = packed_weights::computed_footprint<kKernel>,
          .run = packed_weights::run_computed<kKernel>,
          .accuracy = kKernel.accuracy};
}

}  // namespace bantam::ops
