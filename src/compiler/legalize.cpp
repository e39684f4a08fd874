#include "compiler/legalize.h"

#include <unordered_set>
#include <utility>

#include "ops/data/copy/copy.h"

namespace bantam::compiler {
namespace {

/// Appends `copy(value)`.
graph::ValueId append_copy(graph::Graph& graph, graph::ValueId value, const std::string& name) {
  graph::Value copied;
  copied.name = name;
  copied.desc = graph.value(value).desc;
  copied.quantization = graph.value(value).quantization;
  copied.producer = static_cast<graph::NodeId>(graph.nodes.size());
  const graph::ValueId result = graph.add_value(std::move(copied));
  graph::Node node;
  node.op = &ops::kCopy;
  node.params = graph::Params(ops::kCopy);
  node.name = name;
  node.origin = "copy";
  node.inputs = {value};
  node.outputs = {result};
  graph.nodes.push_back(std::move(node));
  return result;
}

}  // namespace

Result<void> legalize(graph::Graph& graph) {
  std::unordered_set<graph::ValueId> taken;
  // States first: writing a state's next value in place is worth more than writing an output in place.
  for (graph::State& state : graph.states) {
    if (state.out == graph::kNone) state.out = state.in;
    const bool has_node = graph.value(state.out).producer != graph::kNone;
    // A state that keeps its value needs no step at all.
    if (state.out == state.in) continue;
    if (!has_node || !taken.insert(state.out).second) {
      state.out = append_copy(graph, state.out, state.name);
      taken.insert(state.out);
    }
  }
  for (graph::Port& port : graph.outputs) {
    const bool has_node = graph.value(port.value).producer != graph::kNone;
    if (!has_node || !taken.insert(port.value).second) {
      port.value = append_copy(graph, port.value, port.name);
      taken.insert(port.value);
    }
  }
  return graph::sort_topologically(graph);
}

}  // namespace bantam::compiler
