// Scratch beyond what kernels need: when everything has its place, each step gets what is free while it runs, up to
// what makes its kernel fastest (Footprint::useful_scratch_bytes). So small scratch costs time only where memory is
// short. Host only, pure.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/planned_model.h"

namespace bantam::compiler {

/// `useful` is by step. Changes scratch_offset and scratch_bytes of steps, and the offsets of scratch blocks, which
/// keep the bytes that the kernels need: neither the activations nor their bound grow. Blocks of scratch come last, in
/// the order of the steps that have any.
void grow_scratch(const std::vector<std::int64_t>& useful, PlannedModel* model);

/// The same where activations of the first tier may grow to `room` bytes for it (added_scratch_bytes); their bound does
/// not. `useful` is the model's.
void grow_scratch(std::int64_t room, PlannedModel* model);

}  // namespace bantam::compiler
