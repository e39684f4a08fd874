// Computes nodes whose operands are all constant with the operators' reference kernels.
//
// Importers fold as they emit; this pass folds what other rewrites made constant. The reference kernel defines the
// operator, so the result is what the runtime would compute. graph::Builder decides the size limit: a result that would
// bloat the model stays a node. A node whose kernel reports a fault (an integer division by zero) stays too, so that
// the fault is reported when, and only if, the model runs it. One sweep suffices: folded results are constants by the
// time their readers are looked at.
#include <algorithm>

#include "ops/data/integers/integers.h"
#include "ops/data/slice/slice.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {

namespace {

/// `any_size`: what is taken of a constant, and integers that are parameters, may be others at other sizes.
Result<bool> fold_once(graph::Graph& graph, bool any_size) {
  return Rewriter(graph).sweep([=](Rewriter& rewriter, const graph::Node& node) -> std::optional<graph::ValueId> {
    if (any_size && (node.is(ops::kSlice) || node.is(ops::kIntegers))) return std::nullopt;
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

}  // namespace

Result<bool> fold_constants(graph::Graph& graph) { return fold_once(graph, false); }

Result<bool> fold_constants_at_any_size(graph::Graph& graph) { return fold_once(graph, true); }

}  // namespace bantam::passes
