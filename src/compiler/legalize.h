// Makes a graph placeable: afterwards every model output and every state's next value is the result of a node of its
// own, so that each can have memory of its own. Inserts `copy` nodes where an output is an input, a constant or a
// state as it was, or where one value would have to be in two places, and gives absent results a value. Called once per
// model, after the passes.
#pragma once

#include <string>

#include "graph/graph.h"

namespace bantam::compiler {

Result<void> legalize(graph::Graph& graph);

/// Appends the node copy(value) and returns its result, which is described as the value is.
graph::ValueId append_copy(graph::Graph& graph, graph::ValueId value, const std::string& name);

}  // namespace bantam::compiler
