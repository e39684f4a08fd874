// Kernels of the operator pad, listed in its variants table. Strided operands and results are fine.
#pragma once

#include "ops/data/pad/pad.h"

namespace bantam::ops {

Status run_pad(const Invocation& call);

/// Every mode but constant where nothing is cropped. The operand is copied once; then, axis by axis from the innermost
/// on, what lies outside is copied from the part of the result that is there already.
bool supports_pad_slabs(const OpCall& call);
Status run_pad_slabs(const Invocation& call);

/// The operand coordinate that coordinate i repeats, which may lie outside [0, size). size > 0.
std::int64_t padded_source(PadMode mode, std::int64_t i, std::int64_t size) noexcept;

}  // namespace bantam::ops
