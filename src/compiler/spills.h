// Values that rest in a slow memory while nobody uses them, by copies that the plan adds.
//
// Called by the planner of memories. A value that is used often in one stretch, then idle, then used again, may lie in
// the fast memory where it is used and make room in between: one copy leads out, one back. What that is worth only a
// plan tells, so candidates are ranked here and tried there. Pure functions; host only.
#pragma once

#include <cstddef>
#include <vector>

#include "compiler/planned_model.h"

namespace bantam::compiler {

struct Spill {
  graph::ValueId value = graph::kNone;
  graph::NodeId last = graph::kNone;  ///< the node that uses or makes it before it rests; kNone: it is an input
  graph::NodeId next = graph::kNone;  ///< the first that uses it afterwards
  bool copy_out = false;              ///< else the value itself rests
  bool copy_in = false;               ///< else those behind `next` use it where it rests
  double worth = 0;                   ///< bytes times nodes at rest: the order in which to try
};

/// Candidates, the most promising first. None for models with control flow or with sizes that change.
std::vector<Spill> find_spills(const PlannedModel& model);

/// The model's graph, its nodes in their order, with the copies.
graph::Graph with_copies(const graph::Graph& graph, const Spill& spill);

}  // namespace bantam::compiler
