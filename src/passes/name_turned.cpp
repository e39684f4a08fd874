// Importers turn ONNX's layout around convolutions, and give sequences an axis of one element, and only the turned
// value bears the tensor's name. When such transposes and reshapes cancel, comparisons with a reference would not find
// the tensor any more, so what a named one reads gets the name too, and Value::layout says how it is turned. Outputs
// keep their names to themselves: their transposes stay.
#include <optional>
#include <set>

#include "ops/data/reshape/reshape.h"
#include "ops/data/transpose/transpose.h"
#include "passes/list.h"
#include "passes/permutation.h"

namespace bantam::passes {

namespace {

/// The axes that `turned` has as the named tensor's, in the order that the operand of a transpose has them.
ops::IntList before_transpose(const graph::Value& turned, const graph::Node& transpose) {
  const Permutation back = Permutation::of(transpose.as<ops::TransposeParams>().perm).inverse();
  return (turned.layout.size == 0 ? back : Permutation::of(turned.layout).then(back)).list();
}

/// The same of a reshape that adds or drops axes of one element; nothing for others.
std::optional<ops::IntList> before_reshape(const graph::Value& turned, const TensorDesc& x) {
  ops::IntList axes;
  int next = 0;  // of `turned`
  const auto skip_ones = [&] {
    while (next < turned.desc.rank && turned.desc.dims[next] == 1) ++next;
  };
  axes.size = x.rank;
  for (int i = 0; i < x.rank; ++i) {
    axes.v[i] = graph::kAddedAxis;
    if (x.dims[i] == 1) continue;
    skip_ones();
    if (next == turned.desc.rank || turned.desc.dims[next] != x.dims[i]) return std::nullopt;
    axes.v[i] = turned.layout.size == 0 ? next : turned.layout.v[next];
    ++next;
  }
  skip_ones();
  return next == turned.desc.rank ? std::optional(axes) : std::nullopt;
}

}  // namespace

Result<bool> name_turned(graph::Graph& graph) {
  bool changed = false;
  std::set<graph::ValueId> outputs;
  for (const graph::Port& port : graph.outputs) outputs.insert(port.value);
  // Backward, so that a chain of transposes is named from its end.
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool turns = node->op != nullptr && (node->is(ops::kTranspose) || node->is(ops::kReshape));
    if (!turns || node->outputs[0] == graph::kNone) continue;
    const graph::Value& turned = graph.value(node->outputs[0]);
    graph::Value& x = graph.value(node->inputs[0]);
    const bool unnamed = x.name.empty() && x.producer != graph::kNone;
    if (!unnamed || turned.name.empty() || outputs.contains(node->outputs[0])) continue;
    const std::optional<ops::IntList> axes =
        node->is(ops::kTranspose) ? before_transpose(turned, *node) : before_reshape(turned, x.desc);
    if (!axes) continue;
    x.name = turned.name;
    x.layout = *axes;
    changed = true;
  }
  return changed;
}

}  // namespace bantam::passes
