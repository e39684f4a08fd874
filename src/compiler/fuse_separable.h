// Joins a depthwise convolution with the pointwise one that alone reads it (ops/nn/separable_conv2d), so that the value
// between them exists a few rows at a time, in scratch.
//
// Called for plans that have to get smaller (budget.h), also behind patch_rows.h, whose bands are pairs as well.
// Nothing is computed twice and results are the same to the bit: only pairs are joined whose joint kernel is made of
// the two kernels that they have. The joint node is named after both. Host only; pure.
#pragma once

#include <vector>

#include "compiler/select.h"
#include "graph/graph.h"

namespace bantam::compiler {

struct SeparablePair {
  graph::NodeId depthwise = graph::kNone;
  graph::NodeId pointwise = graph::kNone;
};

/// The pairs of a verified graph with one size, in the order of its nodes. None when the policy has rules for parts of
/// the graph: those name nodes. An Error is select_kernels'.
Result<std::vector<SeparablePair>> separable_pairs(const graph::Graph& graph, const KernelPolicy& policy);

/// Joins these pairs. Drops their values and nodes, renumbering the others.
void fuse_pairs(graph::Graph& graph, const std::vector<SeparablePair>& pairs);

}  // namespace bantam::compiler
