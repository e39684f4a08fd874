#include "compiler/legalize.h"

#include <algorithm>
#include <span>
#include <unordered_set>
#include <utility>

#include "ops/data/copy/copy.h"

namespace bantam::compiler {
graph::ValueId append_copy(graph::Graph& graph, graph::ValueId value, const std::string& name) {
  graph::Value copied;
  copied.name = name;
  copied.layout = graph.value(value).layout;
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

namespace {

Result<void> name_absent_results(graph::Graph& graph);

/// Results of control flow that nobody wants have no kernel that would write them. The depth is bounded by
/// graph::kMaxBodyDepth.
Result<void> name_in_bodies(graph::Node& node) {
  for (graph::Graph& body : node.bodies)
    if (auto named = name_absent_results(body); !named) return named;
  return {};
}

/// Gives results that nobody wants a value, which nobody reads: kernels write all their results.
Result<void> name_absent_results(graph::Graph& graph) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    graph::Node& node = graph.nodes[n];
    if (!node.bodies.empty()) {
      if (auto named = name_in_bodies(node); !named) return named;
      continue;
    }
    if (node.op == nullptr || std::ranges::find(node.outputs, graph::kNone) == node.outputs.end()) continue;
    TensorDesc descs[ops::kMaxOutputs];
    const graph::OperandTables tables = graph::operand_tables(graph, node);
    const Status inferred =
        ops::infer(*node.op, node.params.data(), tables.inputs, std::span(descs).first(node.outputs.size()));
    if (!inferred.ok()) return fail(error_from(inferred).in(node.name));
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] != graph::kNone) continue;
      graph::Value value;
      value.desc = descs[o];
      value.producer = static_cast<graph::NodeId>(n);
      node.outputs[o] = graph.add_value(std::move(value));
    }
  }
  return {};
}

}  // namespace

Result<void> legalize(graph::Graph& graph) {
  if (auto named = name_absent_results(graph); !named) return named;
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
  for (graph::MeasuredSize& size : graph.measured)
    if (graph.is_constant(size.value)) size.value = append_copy(graph, size.value, size.name);
  return graph::sort_topologically(graph);
}

}  // namespace bantam::compiler
