#include "compiler/order.h"

#include <algorithm>
#include <cstdint>
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
  explicit MemoryOrder(const graph::Graph& graph) : graph_(graph), uses_(graph), pending_(graph.values.size(), 0) {
    for (std::size_t i = 0; i < graph.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      pending_[i] = static_cast<int>(uses_.of(id).size()) + (uses_.is_external(id) ? 1 : 0);
    }
  }

  std::vector<NodeId> run() {
    std::vector<int> missing(graph_.nodes.size(), 0);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const ValueId id : graph_.nodes[n].inputs)
        if (id != kNone && graph_.value(id).producer != kNone) ++missing[n];
      if (missing[n] == 0) ready_.push_back(static_cast<NodeId>(n));
    }
    std::vector<NodeId> order;
    order.reserve(graph_.nodes.size());
    while (!ready_.empty()) {
      const auto last = ready_.begin() + static_cast<std::ptrdiff_t>(std::min(ready_.size(), kCandidates));
      const auto best = std::min_element(ready_.begin(), last, [&](NodeId a, NodeId b) {
        const auto ka = std::pair(growth(a), a);
        const auto kb = std::pair(growth(b), b);
        return ka < kb;
      });
      const NodeId n = *best;
      ready_.erase(best);
      order.push_back(n);
      for (const ValueId id : graph_.node(n).inputs)
        if (id != kNone) --pending_[static_cast<std::size_t>(id)];
      for (const ValueId id : graph_.node(n).outputs) {
        if (id == kNone) continue;
        for (const graph::Uses::Use& use : uses_.of(id))
          if (--missing[static_cast<std::size_t>(use.node)] == 0) ready_.push_back(use.node);
      }
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
};

}  // namespace

std::vector<graph::NodeId> order_by_memory(const graph::Graph& graph) { return MemoryOrder(graph).run(); }

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
