// Finds the stages of a graph that are computed faster in bands of rows, because their values then stay in the caches.
//
// A value larger than the caches is written to memory and fetched from there again. A stage (patch_rows.h) computed in
// bands keeps only a few rows of it between two operators. Stages are runs of nodes whose values are that large; where
// they begin and end and how many bands they have is chosen by what the cost model predicts: what is fetched less
// against the steps, weights and ragged tiles that bands add. Nothing is computed twice. Called by the fleet compiler
// for plans that may take all the time they want, before it looks at budgets. Host only; deterministic.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "bantam/error.h"
#include "compiler/budget.h"
#include "compiler/planned_model.h"
#include "graph/graph.h"

namespace bantam::compiler {

/// The plan with such stages in bands, which are its reductions from `whole`, plan_model's answer for the same graph
/// and options. Where other steps lose more by less scratch in the smaller plan than bands gain, they get as much of
/// what bands save as is useful, within `most_bytes` of activations. Nothing where no stage gains, or all together do
/// not, and where bands would need more activations (for one thread: every number of threads gets the same bands, and
/// results); for targets without caches, and for graphs with control flow, several sizes, or backends for parts of
/// them. Requires a verified graph in execution order. An Error is plan_model's, or a defect of a row rule.
Result<std::optional<ReducedModel>> plan_in_bands(const graph::Graph& graph, const PlanOptions& options,
                                                  const PlannedModel& whole,
                                                  std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max());

}  // namespace bantam::compiler
