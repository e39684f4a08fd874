// Computes cheap values again instead of keeping them: a value that lies in memory at the peak, read before and behind
// it, is made once more for its later readers, where what it is made of is there anyway or smaller. Used by budget.h;
// host only; pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/graph.h"

namespace bantam::compiler {

struct RecomputedGraph {
  graph::Graph graph;
  std::int64_t values = 0;    ///< that are computed again
  std::int64_t elements = 0;  ///< of them, per invoke
};

/// Nothing when no value that is alive at node `peak`, and not read there, is cheap to compute again. Requires a
/// verified graph in execution order without control flow.
std::optional<RecomputedGraph> recompute_values(const graph::Graph& graph, graph::NodeId peak);

}  // namespace bantam::compiler
