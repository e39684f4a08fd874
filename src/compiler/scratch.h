// Scratch beyond what kernels need: when everything has its place, each step gets what is free while it runs, up to
// what makes its kernel fastest (Footprint::useful_scratch_bytes). So small scratch costs time only where memory is
// short. Host only, pure.
#pragma once

#include <cstdint>

#include "compiler/planned_model.h"

namespace bantam::compiler {

/// Changes scratch_offset and scratch_bytes of steps, and the offsets of scratch blocks, which keep the bytes that the
/// kernels need. Activations of the first tier may grow to `room` bytes for it (added_scratch_bytes); their bound does
/// not, nor do they where that is no more than they have. Blocks of scratch come last, in the order of the steps that
/// have any.
void grow_scratch(PlannedModel* model, std::int64_t room = 0);

}  // namespace bantam::compiler
