// The vector kernel of cumsum behind its variants table in cumsum.cpp.
#pragma once

#include "ops/reduce/cumsum/cumsum.h"

namespace bantam::ops::cumsum {

/// Dense operands, axes other than the innermost; the bits of the reference.
bool supports_columns(const OpCall& call);
Status run_columns(const Invocation& call);

}  // namespace bantam::ops::cumsum
