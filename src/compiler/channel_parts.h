// Layers cut into parts by output channels, so that the weights of one part are streamed at a time.
//
// Called by the planner of memories where a copy of all weights of a layer has no room in a fast memory
// (compiler/weight_streams.h). Each part computes some of the channels with its own slice of every operand that has one
// row per channel; a concat joins them, which the storage rules turn into views of the result. Every output is computed
// as before, so results are the same to the bit. Pure functions; host only.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace bantam::compiler {

/// The graph, its nodes in their order, with node `n` as so many parts and their concat. None where the operator has no
/// rule, where what would be cut is no constant, or where there are fewer blocks of channels than parts.
std::optional<graph::Graph> in_channel_parts(const graph::Graph& graph, graph::NodeId n, int parts);

}  // namespace bantam::compiler
