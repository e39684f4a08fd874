// Branches: which parts of a graph which outputs need.
//
// `choose_outputs` cuts a graph down to what the wanted outputs need, before the passes; `output_marks` tells per node
// which outputs need it, for sessions that compute some of their outputs only (Session::invoke). Host only; both are
// linear in the graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bantam/runtime.h"
#include "graph/graph.h"

namespace bantam::compiler {

/// Makes `outputs` (names of outputs or of any other tensor of the model; empty: the outputs there are) and then `keep`
/// the graph's outputs. Removes the inputs, states and nodes that only others need when `outputs` says so. An Error
/// lists what the model has for every name that it lacks.
Result<void> choose_outputs(graph::Graph& graph, const std::vector<std::string>& outputs,
                            const std::vector<std::string>& keep);

/// By node: bit min(o, 63) is set when output o needs it, all bits when a state's next value or a measured size does.
/// Nodes must be in execution order.
std::vector<std::uint64_t> output_marks(const graph::Graph& graph);

}  // namespace bantam::compiler
