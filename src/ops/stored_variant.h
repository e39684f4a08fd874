// Kernels whose weights may be stored in one of several types: one set of functions that are told the type, and one
// variant for each type (op.h), since packages name kernels and tables of variants hold functions that know no more
// than the call. Used by the operators that narrow weights (narrowing.h). Freestanding, decided while compiling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ops/op.h"

namespace bantam::ops {

/// As the functions of KernelVariant, where `type` is what the weights are stored as.
struct StoringKernel {
  bool (*supports)(const OpCall& call) = nullptr;
  Footprint (*footprint)(const OpCall& call, int threads) = nullptr;
  std::int64_t (*packed_bytes)(const OpCall& call, int input, ElementType type) = nullptr;
  void (*pack)(const OpCall& call, int input, ElementType type, std::byte* destination) = nullptr;
  Status (*run)(const Invocation& invocation, ElementType type) = nullptr;
  Accuracy accuracy{};
};

/// The kernel on weights that are stored as `kType`.
template <const StoringKernel& kKernel, ElementType kType>
constexpr KernelVariant stored_variant(std::string_view name) {
  return {.name = name,
          .supports = kKernel.supports,
          .footprint = kKernel.footprint,
          .packed_bytes = [](const OpCall& call, int input) { return kKernel.packed_bytes(call, input, kType); },
          .pack = [](const OpCall& call, int input, std::byte* to) { kKernel.pack(call, input, kType, to); },
          .run = [](const Invocation& invocation) { return kKernel.run(invocation, kType); },
          .accuracy = kKernel.accuracy};
}

}  // namespace bantam::ops
