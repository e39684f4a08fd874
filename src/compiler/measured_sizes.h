// Sizes that a model computes while it runs (graph::MeasuredSize), as the planner sees them: which dimensions they are,
// and which nodes must wait for them. Called by planned_model.cpp. Pure functions.
#pragma once

#include <span>
#include <vector>

#include "compiler/order.h"
#include "compiler/planned_model.h"
#include "compiler/sized_model.h"
#include "graph/graph.h"

namespace bantam::compiler {

/// The dimensions that the graph measures, in the order of the nodes that give their sizes.
std::vector<PlannedMeasure> planned_measures(const graph::Graph& graph, const std::vector<Dimension>& dimensions);

/// Who must wait for what: nodes whose parameters follow a measured size, for the node that gives it. (What follows a
/// size through its operands alone comes after those anyway.) `instances` as PlanOptions has them.
std::vector<Precedence> size_precedences(const graph::Graph& graph, std::span<const SizedGraph> instances,
                                         const std::vector<Dimension>& dimensions);

}  // namespace bantam::compiler
