#include "compiler/order.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace bantam::compiler {
namespace {

using graph::kNone;
using graph::NodeId;
using graph::ValueId;

/// Ready nodes that are compared at each step: bounds the time for very wide graphs.
constexpr std::size_t kCandidates = 256;

class MemoryOrder {
 public:
  MemoryOrder(const graph::Graph& graph, const std::vector<Precedence>& precedences)
      : graph_(graph), uses_(graph), pending_(graph.values.size(), 0), waiting_(graph.nodes.size()) {
    for (const Precedence& p : precedences) waiting_[static_cast<std::size_t>(p.before)].push_back(p.after);
    for (std::size_t i = 0; i < graph.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      pending_[i] = static_cast<int>(uses_.of(id).size()) + (uses_.is_external(id) ? 1 : 0);
    }
  }

  /// By growth, or in the order of the nodes where nothing stands against it.
  std::vector<NodeId> run(bool by_memory) {
    std::vector<int> missing(graph_.nodes.size(), 0);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const ValueId id : graph_.nodes[n].inputs)
        if (id != kNone && graph_.value(id).producer != kNone) ++missing[n];
    }
    for (const std::vector<NodeId>& list : waiting_)
      for (const NodeId n : list) ++missing[static_cast<std::size_t>(n)];
    for (std::size_t n = 0; n < missing.size(); ++n)
      if (missing[n] == 0) ready_.push_back(static_cast<NodeId>(n));
    std::vector<NodeId> order;
    order.reserve(graph_.nodes.size());
    while (!ready_.empty()) {
      const std::size_t compared = by_memory ? std::min(ready_.size(), kCandidates) : ready_.size();
      const auto last = ready_.begin() + static_cast<std::ptrdiff_t>(compared);
      const auto best = std::min_element(ready_.begin(), last, [&](NodeId a, NodeId b) {
        if (!by_memory) return a < b;
        const auto ka = std::pair(growth(a), a);
        const auto kb = std::pair(growth(b), b);
        return ka < kb;
      });
      const NodeId n = *best;
      ready_.erase(best);
      order.push_back(n);
      for (const ValueId id : graph_.node(n).inputs)
        if (id != kNone) --pending_[static_cast<std::size_t>(id)];
      const auto arrive = [&](NodeId reader) {
        if (--missing[static_cast<std::size_t>(reader)] == 0) ready_.push_back(reader);
      };
      for (const ValueId id : graph_.node(n).outputs)
        if (id != kNone)
          for (const graph::Uses::Use& use : uses_.of(id)) arrive(use.node);
      std::ranges::for_each(waiting_[static_cast<std::size_t>(n)], arrive);
    }
    return order;
  }

 private:
  std::int64_t bytes(ValueId id) const { return graph_.value(id).constant ? 0 : graph_.value(id).desc.bytes(); }

  /// Bytes alive after the node minus bytes alive before it.
  std::int64_t growth(NodeId n) const {
    const graph::Node& node = graph_.node(n);
    std::int64_t result = 0;
    for (const ValueId id : node.outputs)
      if (id != kNone && pending_[static_cast<std::size_t>(id)] > 0) result += bytes(id);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == kNone || std::find(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(i), id) !=
                             node.inputs.begin() + static_cast<std::ptrdiff_t>(i))
        continue;
      const auto own = std::count(node.inputs.begin(), node.inputs.end(), id);
      if (pending_[static_cast<std::size_t>(id)] == own) result -= bytes(id);
    }
    return result;
  }

  const graph::Graph& graph_;
  graph::Uses uses_;
  std::vector<int> pending_;  ///< readers still to come, by value
  std::vector<NodeId> ready_;
  std::vector<std::vector<NodeId>> waiting_;  ///< by node: who must run after it
};

}  // namespace

std::vector<graph::NodeId> order_of_model(const graph::Graph& graph, const std::vector<Precedence>& precedences) {
  std::vector<NodeId> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  if (std::ranges::all_of(precedences, [](const Precedence& p) { return p.before < p.after; })) return order;
  return MemoryOrder(graph, precedences).run(false);
}

std::vector<graph::NodeId> order_by_memory(const graph::Graph& graph, const std::vector<Precedence>& precedences) {
  return MemoryOrder(graph, precedences).run(true);
}

void order_bodies_by_memory(graph::Graph& graph) {
  for (graph::Node& node : graph.nodes) {
    for (graph::Graph& body : node.bodies) {
      reorder(body, order_by_memory(body));
      order_bodies_by_memory(body);
    }
  }
}

void reorder(graph::Graph& graph, const std::vector<graph::NodeId>& order) {
  std::vector<graph::Node> nodes;
  nodes.reserve(order.size());
  for (const NodeId n : order) nodes.push_back(std::move(graph.node(n)));
  graph.nodes = std::move(nodes);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const ValueId id : graph.nodes[n].outputs)
      if (id != kNone) graph.value(id).producer = static_cast<NodeId>(n);
}

}  // namespace bantam::compiler
