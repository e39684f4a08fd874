// How often the blocks of a planned model are accessed, and moving blocks from one tier to another.
//
// Called by the planner of memories (compiler/memories.h). Counts are bytes of one invoke: every operand of every step
// once, scratch written and read, inputs written and outputs read by the caller; steps of branches and loops count
// once. Kernels that read an operand several times find most of it in registers or caches, which this does not know; of
// weights it does (weight_streams.h): their copies count once written and as often read as kernels go through them.
// Pure functions; host only.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/planned_model.h"
#include "plan/tiers.h"

namespace bantam::compiler {

struct Accesses {
  std::vector<std::int64_t> blocks;  ///< by block
  std::int64_t state = 0;            ///< both copies of alternating states included
  std::int64_t links = 0;            ///< ports whose memory the fleet provides
};

Accesses count_accesses(const PlannedModel& model);

/// Moves every block to the tier and offset that the plan, which has them in the same order, gives it: values at every
/// size, ports and scratch with it.
void move_blocks(PlannedModel& model, const plan::TierPlan& plan);

}  // namespace bantam::compiler
