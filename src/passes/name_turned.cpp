// Importers turn ONNX's layout around convolutions, and only the turned value bears the tensor's name. When such
// transposes cancel, comparisons with a reference would not find the tensor any more, so what a named transpose reads
// gets the name too, and Value::layout says how it is turned. Outputs keep their names to themselves: their transposes
// stay.
#include <set>

#include "ops/data/transpose/transpose.h"
#include "passes/list.h"
#include "passes/permutation.h"

namespace bantam::passes {

Result<bool> name_turned(graph::Graph& graph) {
  bool changed = false;
  std::set<graph::ValueId> outputs;
  for (const graph::Port& port : graph.outputs) outputs.insert(port.value);
  // Backward, so that a chain of transposes is named from its end.
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (node->op == nullptr || !node->is(ops::kTranspose) || node->outputs[0] == graph::kNone) continue;
    const graph::Value& turned = graph.value(node->outputs[0]);
    graph::Value& x = graph.value(node->inputs[0]);
    const bool unnamed = x.name.empty() && x.producer != graph::kNone;
    if (!unnamed || turned.name.empty() || outputs.contains(node->outputs[0])) continue;
    const Permutation back = Permutation::of(node->as<ops::TransposeParams>().perm).inverse();
    x.name = turned.name;
    x.layout = (turned.layout.size == 0 ? back : Permutation::of(turned.layout).then(back)).list();
    changed = true;
  }
  return changed;
}

}  // namespace bantam::passes
