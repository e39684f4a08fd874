// From the kernel names of a package to the functions of this build. Freestanding.
#pragma once

#include "bantam/runtime.h"
#include "ops/op.h"
#include "package/tables.h"

namespace bantam::format {

struct ResolvedKernel {
  const ops::OpDef* op = nullptr;
  const ops::KernelVariant* variant = nullptr;
};

/// Fails with kUnsupported when this build has no such operator or variant.
inline Status resolve_kernel(const Kernel& kernel, OpTable table, ResolvedKernel* out) {
  for (const ops::OpDef* op : table.ops) {
    if (op->name != view(kernel.op())) continue;
    out->op = op;
    out->variant = ops::find_variant(*op, view(kernel.variant()));
    if (out->variant != nullptr) return ok_status();
    return failure(StatusCode::kUnsupported, "the package uses a kernel variant that this build lacks");
  }
  return failure(StatusCode::kUnsupported, "the package uses an operator that this build lacks");
}

}  // namespace bantam::format
