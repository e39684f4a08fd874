// The passes, one per file of the same name. See Pass in passes.h for what all of them promise.
#pragma once

#include "bantam/error.h"
#include "graph/graph.h"

namespace bantam::passes {

Result<bool> remove_dead_code(graph::Graph& graph);

}  // namespace bantam::passes
