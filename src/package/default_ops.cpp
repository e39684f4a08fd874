#include "bantam/runtime.h"
#include "ops/op.h"

namespace bantam {

// A file of its own: a firmware that passes its own table must not link every kernel.
OpTable default_ops() noexcept { return {ops::all_ops()}; }

}  // namespace bantam
