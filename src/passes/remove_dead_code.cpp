// Removes nodes none of whose results is read, by a node or from outside; then renumbers.
#include <algorithm>

#include "passes/list.h"

namespace bantam::passes {

Result<bool> remove_dead_code(graph::Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  graph::for_each_result(graph, [&](graph::ValueId id) { needed[static_cast<std::size_t>(id)] = true; });
  bool changed = false;
  // Readers come after producers, so one sweep from the end sees every need.
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (node->op == nullptr) continue;
    const bool used = std::any_of(node->outputs.begin(), node->outputs.end(), [&](graph::ValueId id) {
      return id != graph::kNone && needed[static_cast<std::size_t>(id)];
    });
    if (!used) {
      node->op = nullptr;
      changed = true;
      continue;
    }
    for (const graph::ValueId id : node->inputs)
      if (id != graph::kNone) needed[static_cast<std::size_t>(id)] = true;
  }
  graph::compact(graph);
  return changed;
}

}  // namespace bantam::passes
