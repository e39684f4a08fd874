// An entry of a fleet's kernel table: what the package's kernel names resolve to in this build.
#pragma once

#include "bantam/runtime.h"
#include "ops/op.h"

namespace bantam {

struct Session::Kernel {
  Status (*run)(const ops::Invocation& invocation);
};
static_assert(sizeof(Status(*)(const ops::Invocation&)) == sizeof(void*), "the kernel table holds pointers");

}  // namespace bantam
