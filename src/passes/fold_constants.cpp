// Computes nodes whose operands are all constant with the operators' reference kernels.
//
// Importers fold as they emit; this pass folds what other rewrites made constant. The reference kernel defines the
// operator, so the result is what the runtime would compute. graph::Builder decides the size limit: a result that would
// bloat the model stays a node. A node whose kernel reports a fault (an integer division by zero) stays too, so that
// the fault is reported when, and only if, the model runs it. One sweep suffices: folded results are constants by the
// time their readers are looked at.
#include <algorithm>

#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {

Result<bool> fold_constants(graph::Graph& graph) {
  return Rewriter(graph).sweep([](Rewriter& rewriter, const graph::Node& node) -> std::optional<graph::ValueId> {
    const bool constant = std::all_of(node.inputs.begin(), node.inputs.end(), [&](graph::ValueId id) {
      return id == graph::kNone || rewriter.graph().is_constant(id);
    });
    if (!constant) return std::nullopt;
    const auto folded = rewriter.emit(*node.op, node.params, node.inputs);
    // The builder leaves results beyond its size limit as nodes: nothing gained.
    if (!folded || !rewriter.graph().is_constant(*folded)) return std::nullopt;
    return folded;
  });
}

}  // namespace bantam::passes
