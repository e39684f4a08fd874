// Makes a model's plan smaller, step by step, until its activations fit a number of bytes.
//
// Called by the fleet compiler when a budget is exceeded, and for the frontier. What is tried, cheapest first:
// depthwise convolutions computed with the pointwise ones behind them, a few rows at a time (fuse_separable.h); cheap
// values computed again (recompute.h); stages computed in bands of rows (patch_rows.h), first with nothing computed
// twice; kernels with less scratch at the steps that exceed the target. Each step states what it saved and what work it
// adds. Candidates are ranked by an estimate and then planned for real, so that every number is one of a plan. Order
// and sharing are part of every plan. Models with control flow or sizes that change keep their graph; only their
// kernels change. Host only; deterministic.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bantam/compiler.h"
#include "compiler/planned_model.h"
#include "graph/graph.h"

namespace bantam::compiler {

struct ReducedModel {
  PlannedModel planned;
  std::vector<ReductionReport> reductions;  ///< what was done, in order; empty: the plan as it was
  std::vector<std::string> tried;           ///< what was planned and did not help enough, for messages
};

/// The first plan found whose activations need at most `target` bytes, or else the smallest one found. `unreduced` is
/// plan_model's answer for the same graph and options. `progress` may be empty.
Result<ReducedModel> reduce_activations(const graph::Graph& graph, const PlanOptions& options, PlannedModel unreduced,
                                        std::int64_t target, const std::function<void(const std::string&)>& progress);

}  // namespace bantam::compiler
