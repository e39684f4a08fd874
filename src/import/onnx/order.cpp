#include "import/onnx/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

namespace bantam::import::onnx {
namespace {

using Producers = std::unordered_map<std::string_view, std::size_t>;

/// Names that a nested graph defines itself.
std::unordered_set<std::string_view> names_inside(const GraphProto& graph) {
  std::unordered_set<std::string_view> names;
  for (const TensorProto& tensor : graph.initializers) names.insert(tensor.name);
  for (const ValueInfo& input : graph.inputs) names.insert(input.name);
  for (const NodeProto& node : graph.nodes) names.insert(node.outputs.begin(), node.outputs.end());
  return names;
}

/// Calls f(name) for everything a node reads, also what its nested graphs read from outside. Recursion is bounded by
/// kMaxGraphDepth.
void for_each_read(const NodeProto& node, const std::function<void(std::string_view)>& f) {
  for (const std::string_view name : node.inputs)
    if (!name.empty()) f(name);
  for (const AttributeProto& attribute : node.attributes) {
    if (!attribute.graph) continue;
    const auto inside = names_inside(*attribute.graph);
    const auto outside = [&](std::string_view name) {
      if (!inside.contains(name)) f(name);
    };
    for (const NodeProto& inner : attribute.graph->nodes) for_each_read(inner, outside);
    for (const ValueInfo& output : attribute.graph->outputs) outside(output.name);
  }
}

Result<Producers> find_producers(const GraphProto& graph) {
  Producers producers;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const std::string_view name : graph.nodes[n].outputs) {
      if (name.empty()) continue;
      if (const auto [first, inserted] = producers.emplace(name, n); !inserted)
        return fail(StatusCode::kInvalidModel,
                    fmt::format("value '{}' is produced twice, by node '{}' and by node '{}'", printable(name),
                                node_label(graph.nodes[first->second]), node_label(graph.nodes[n])),
                    "every value of an ONNX graph has one producer; export the model again");
    }
  }
  return producers;
}

/// Marks what the outputs need, and collects the names that are read on the way.
std::vector<bool> find_needed(const GraphProto& graph, const Producers& producers,
                              std::unordered_set<std::string_view>& used) {
  std::vector<bool> needed(graph.nodes.size(), false);
  std::vector<std::size_t> open;
  const auto need = [&](std::string_view name) {
    used.insert(name);
    const auto producer = producers.find(name);
    if (producer == producers.end() || needed[producer->second]) return;
    needed[producer->second] = true;
    open.push_back(producer->second);
  };
  for (const ValueInfo& output : graph.outputs) need(output.name);
  while (!open.empty()) {
    const std::size_t n = open.back();
    open.pop_back();
    for_each_read(graph.nodes[n], need);
  }
  return needed;
}

/// A node on a cycle, found by walking from an unordered node to unordered producers until one comes again.
std::size_t node_on_cycle(const GraphProto& graph, const Producers& producers, const std::vector<bool>& ordered,
                          std::size_t start) {
  std::vector<bool> visited(graph.nodes.size(), false);
  std::size_t n = start;
  while (!visited[n]) {
    visited[n] = true;
    std::size_t next = n;
    for_each_read(graph.nodes[n], [&](std::string_view name) {
      const auto producer = producers.find(name);
      if (producer != producers.end() && !ordered[producer->second]) next = producer->second;
    });
    n = next;
  }
  return n;
}

}  // namespace

std::string node_label(const NodeProto& node) {
  if (!node.name.empty()) return printable(node.name);
  const auto output = std::find_if(node.outputs.begin(), node.outputs.end(), [](auto name) { return !name.empty(); });
  return output == node.outputs.end() ? printable(node.op_type) : printable(*output);
}

Result<NodeOrder> order_nodes(const GraphProto& graph) {
  NodeOrder result;
  auto producers = find_producers(graph);
  if (!producers) return fail(std::move(producers.error()));
  const std::size_t count = graph.nodes.size();
  const std::vector<bool> needed = find_needed(graph, *producers, result.used);

  std::vector<std::size_t> missing(count, 0);
  std::vector<std::vector<std::size_t>> readers(count);
  for (std::size_t n = 0; n < count; ++n) {
    for_each_read(graph.nodes[n], [&](std::string_view name) {
      const auto producer = producers->find(name);
      if (producer == producers->end()) return;
      readers[producer->second].push_back(n);
      ++missing[n];
    });
  }
  // The smallest ready index first keeps the file's order wherever it is valid.
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t n = 0; n < count; ++n)
    if (missing[n] == 0) ready.push(n);
  std::vector<bool> ordered(count, false);
  std::size_t done = 0;
  while (!ready.empty()) {
    const std::size_t n = ready.top();
    ready.pop();
    ordered[n] = true;
    ++done;
    if (needed[n]) result.nodes.push_back(n);
    for (const std::size_t reader : readers[n])
      if (--missing[reader] == 0) ready.push(reader);
  }
  if (done != count) {
    const auto stuck = static_cast<std::size_t>(std::find(ordered.begin(), ordered.end(), false) - ordered.begin());
    const NodeProto& node = graph.nodes[node_on_cycle(graph, *producers, ordered, stuck)];
    return fail(StatusCode::kInvalidModel,
                fmt::format("the graph has a cycle through node '{}' ({})", node_label(node), printable(node.op_type)),
                "a model must be free of cycles; export it again");
  }
  return result;
}

}  // namespace bantam::import::onnx
