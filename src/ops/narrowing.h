// Kernels that store the f32 weights of a model in fewer bits and compute with what these stand for. They are variants
// as any other (op.h), but for two things: results are those of other weights, so the compiler takes one only where the
// narrow type loses nothing or where the user asked for it; and the packed form of an operand may be smaller than its
// desc says, so nothing but `pack` and `run` of such a variant reads its elements, `infer` of the operator included.
//
// Asked by the compiler, by reports, by tests and by the verifier of packages. Freestanding, re-entrant.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/op.h"

namespace bantam::ops {

/// In how many bits weights are stored, and computed with.
struct NarrowForm {
  ElementType type = ElementType::kNone;  ///< f16, bf16, i8 or i4, see nn/gemm/narrow_panels.h; kNone: as they are
  bool half_arithmetic = false;           ///< of f16: where the processor can, products have 16 bits too (gemm_f16.h)

  bool operator==(const NarrowForm&) const = default;
};

struct Narrowing {
  const OpDef* op = nullptr;
  std::string_view variant;
  NarrowForm form;
  std::uint64_t operands = 0;  ///< bit i set: constant operand i is narrowed
  /// The inverse of the variant's `pack`: the weights that the kernel computes with, dense, in f32.
  void (*restore)(const OpCall& call, int input, ElementType type, const std::byte* packed, float* elements) = nullptr;

  bool narrows(std::size_t operand) const noexcept { return (operands >> operand & 1U) != 0; }
};

/// What the variant of `op` narrows; null when it stores weights as they are.
const Narrowing* find_narrowing(const OpDef& op, const KernelVariant& variant) noexcept;

/// How it stores weights and computes with them.
NarrowForm narrow_form(const OpDef& op, const KernelVariant& variant) noexcept;

}  // namespace bantam::ops
