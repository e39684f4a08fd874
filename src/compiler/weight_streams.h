// Weights that are streamed: copied from the slow memory that holds the package into a faster one, right before the
// step that reads them.
//
// Called by the planner of memories (compiler/memories.h) and by those who write what it decided. Kernels read their
// weights several times, a convolution once per tile of pixels, a recurrent layer once per step in time; a copy costs
// one read of the slow memory. It is a buffer of the plan that lives for one step, and a step of its own. What a copy
// holds is what the chosen kernel wants, packed where it packs. How often a kernel reads its weights is derived here,
// from the multiplications that the operator states: all matrices among the constants take part in equally many, and of
// these a kernel does as many per read as it keeps rows of the other operand at hand. Caches are not counted on. Pure
// functions; host only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/planned_model.h"

namespace bantam::compiler {

/// The constant operands of all steps, as one invoke reads them; steps of branches and loops count once.
std::vector<PlannedStream> weight_reads(const PlannedModel& model);

/// Those that a copy could serve and that save by it, given what a byte costs in the package's memory and in the
/// cheapest one; what saves most comes first. None for models with control flow or with sizes that change.
std::vector<PlannedStream> find_streams(const PlannedModel& model, double weights_cost, double least_cost);

/// The constant operands that could be served from memory of the arena, in the order of their steps, whatever it saves.
/// None for models with sizes that change.
std::vector<PlannedStream> copyable_weights(const PlannedModel& model);

/// What a copy in a memory of this cost saves.
double saving(const PlannedStream& stream, double weights_cost, double cost);

/// Gives the model these streams, in any order, instead of those that it has; their blocks are its last.
void set_streams(PlannedModel& model, std::span<const PlannedStream> streams);

inline bool same_operand(const PlannedStream& a, const PlannedStream& b) {
  return a.node == b.node && a.input == b.input;
}

/// Where the next resident weights would lie, within the state memory.
std::int64_t resident_offset(const PlannedModel& model);

/// Puts a copy that is made when the session is placed behind the model's state, in the place of the stream of the same
/// operand if there is one.
void keep_resident(PlannedModel& model, const PlannedStream& weights);

/// Bytes that one invoke reads from the package's memory, the copies' reads among them.
std::int64_t weight_bytes_read(const PlannedModel& model);

/// Adds the steps that copy. Requires that all blocks have their places; called once.
void insert_copies(PlannedModel& model);

}  // namespace bantam::compiler
