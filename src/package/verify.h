// Verification of untrusted package bytes, once, so that the executor may run blind afterwards.
//
// What is proved: the FlatBuffer is well formed; every index is in range; every value lies within its region and its
// strides within its storage; every step's results are what its operator infers from its operands; the kernel variant
// supports the call, unless the step has nothing to compute and is never run; steps that jump do so within one another,
// and limits bound how often; scratch suffices; and no kernel writes where it reads, except as its footprint permits.
// Hence a hostile package can compute nonsense but cannot reach memory outside arena, ports and package. Freestanding.
#pragma once

#include "bantam/runtime.h"
#include "package/resolve.h"
#include "package/tables.h"

namespace bantam::format {

/// Verifies the tables of a package whose FlatBuffer structure was verified. Status::index is the step, value or port.
Status verify_tables(const Package& package, std::uint64_t weights_bytes, const std::byte* weights, OpTable ops);

/// Verifies copies of a model's tables after apply_patches, as thoroughly as the package's own were. `kernels` are the
/// package's, resolved. The package itself was verified before.
Status verify_sizes(const Model& model, const Value* values, const std::uint32_t* params, const ResolvedKernel* kernels,
                    const std::byte* weights);

}  // namespace bantam::format
