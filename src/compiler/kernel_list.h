// The kernels that a package calls, as rows {"operator", "variant"}: what a firmware is built with (ops/built.h).
// Host only.
#pragma once

#include <string>

#include "bantam/runtime.h"

namespace bantam::compiler {

/// One row a line, in the package's order. Requires an open package, whose names are those of known kernels.
std::string kernel_list(const Package& package);

}  // namespace bantam::compiler
