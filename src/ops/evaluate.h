// Runs one kernel variant on operands that all have data, with a single block of working memory: the shared helper of
// tests and of the host's constant folder. Freestanding; the caller owns all memory.
#pragma once

#include <cstdint>
#include <span>

#include "ops/op.h"

namespace bantam::ops {

/// Bytes of working memory that `evaluate` needs: the packed forms of operands and the kernel's scratch.
std::int64_t evaluation_bytes(const KernelVariant& variant, const OpCall& call, int threads);

/// Packs the operands that the variant wants packed, then runs it. `call.inputs` and `call.outputs` have data (absent
/// operands have none) and descs that infer accepted, and the variant supports the call with these operands as
/// constants. `memory` is kAlignment-aligned and has evaluation_bytes().
Status evaluate(const KernelVariant& variant, const OpCall& call, std::span<std::byte> memory, const Threads& threads);

}  // namespace bantam::ops
