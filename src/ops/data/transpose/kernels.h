// The kernels of transpose behind its variants table in transpose.cpp.
#pragma once

#include "ops/common/box.h"
#include "ops/data/transpose/transpose.h"

namespace bantam::ops::transpose {

/// What the call moves.
Box make_moves(const TransposeParams& p, const TensorDesc& x, const TensorDesc& out) noexcept;

/// Results whose innermost dimension is contiguous, of operands one of whose dimensions is.
bool supports_tiles(const OpCall& call);
Status run_tiles(const Invocation& call);

}  // namespace bantam::ops::transpose
