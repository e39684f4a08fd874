// Which operators can compute in another layout, and how their parameters change.
//
// The knowledge that channels_last needs about single operators, as a table of rules by operator name. A rule answers:
// given the layout of one operand or of the result, which layouts do all operands and the result have so that the
// operator, with parameters rewritten, computes the same elements? Operators without a rule keep their layout.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "passes/permutation.h"

namespace bantam::passes {

/// The layout of one application of an operator. All results share `result`.
struct NodeLayout {
  enum class Operand {
    kLaidOut,    ///< read in the layout `operands[i]`
    kBroadcast,  ///< of lower rank: extended with leading ones to the result's rank, then turned like the result
    kPlain,      ///< read as it is
  };
  std::vector<Operand> kinds;
  std::vector<Permutation> operands;  ///< meaningful for kLaidOut
  Permutation result;
};

inline constexpr int kResult = -1;

/// The node's layout that follows from `layout` of operand `where`, or of the result (kResult). Nothing when the
/// operator cannot.
std::optional<NodeLayout> propagate_layout(const graph::Graph& graph, const graph::Node& node, int where,
                                           const Permutation& layout);

/// The node's parameters in that layout, which propagate_layout gave.
graph::Params lay_out_params(const graph::Node& node, const NodeLayout& layout);

}  // namespace bantam::passes
