#include "compiler/recompute.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/data/expand/expand.h"
#include "ops/data/pad/pad.h"
#include "ops/data/tile/tile.h"
#include "ops/elementwise/cast/cast.h"
#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/elementwise/lookup8/lookup8.h"
#include "ops/elementwise/quantize/quantize.h"
#include "ops/elementwise/requantize/requantize.h"
#include "ops/elementwise/unary/unary.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

/// A few operations for each element, none of them a product of matrices.
constexpr const ops::OpDef* kCheap[] = {&ops::kUnary,    &ops::kCast,       &ops::kDequantize,
                                        &ops::kQuantize, &ops::kRequantize, &ops::kLookup8,
                                        &ops::kExpand,   &ops::kPad,        &ops::kTile};

class Recomputer {
 public:
  Recomputer(const Graph& graph, NodeId peak) : graph_(graph), peak_(peak), last_(graph.values.size(), kNone) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
      for (const ValueId id : graph.nodes[n].inputs)
        if (id != kNone) last_[static_cast<std::size_t>(id)] = static_cast<NodeId>(n);
    const auto end = static_cast<NodeId>(graph.nodes.size());
    graph::for_each_result(graph, [&](ValueId id) { last_[static_cast<std::size_t>(id)] = end; });
  }

  std::optional<RecomputedGraph> run() {
    for (std::size_t v = 0; v < graph_.values.size(); ++v)
      if (is_worth_it(static_cast<ValueId>(v))) again_.push_back(static_cast<ValueId>(v));
    if (again_.empty()) return std::nullopt;
    RecomputedGraph result;
    result.graph = graph_;
    result.graph.nodes.clear();
    std::vector<ValueId> now(graph_.values.size());
    for (std::size_t v = 0; v < now.size(); ++v) now[v] = static_cast<ValueId>(v);
    for (NodeId n = 0; n < static_cast<NodeId>(graph_.nodes.size()); ++n) {
      Node node = graph_.node(n);
      for (ValueId& id : node.inputs) {
        if (n > peak_ && std::ranges::count(again_, id) > 0 && now[static_cast<std::size_t>(id)] == id)
          now[static_cast<std::size_t>(id)] = repeat(id, result);
        if (id != kNone) id = now[static_cast<std::size_t>(id)];
      }
      append(std::move(node), result.graph);
    }
    return result;
  }

 private:
  bool is_worth_it(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    const NodeId last = last_[static_cast<std::size_t>(id)];
    if (value.producer == kNone || value.producer >= peak_ || last <= peak_ ||
        last >= static_cast<NodeId>(graph_.nodes.size()))
      return false;
    if (std::ranges::count(graph_.node(peak_).inputs, id) > 0) return false;
    const Node& node = graph_.node(value.producer);
    if (node.outputs.size() != 1 || std::ranges::find(kCheap, node.op) == std::end(kCheap)) return false;
    // What the value is made of has to last instead.
    std::int64_t more = 0;
    for (const ValueId x : node.inputs)
      if (x != kNone && !graph_.is_constant(x) && last_[static_cast<std::size_t>(x)] < last)
        more += graph_.value(x).desc.bytes();
    return more < value.desc.bytes();
  }

  ValueId repeat(ValueId id, RecomputedGraph& result) const {
    Node node = graph_.node(graph_.value(id).producer);
    graph::Value value = graph_.value(id);
    ++result.values;
    result.elements += value.desc.elements();
    node.outputs = {result.graph.add_value(std::move(value))};
    const ValueId made = node.outputs.front();
    append(std::move(node), result.graph);
    return made;
  }

  static void append(Node node, Graph& graph) {
    for (const ValueId id : node.outputs)
      if (id != kNone) graph.value(id).producer = static_cast<NodeId>(graph.nodes.size());
    graph.nodes.push_back(std::move(node));
  }

  const Graph& graph_;
  NodeId peak_;
  std::vector<NodeId> last_;  ///< by value: its last reader, or beyond the last node
  std::vector<ValueId> again_;
};

}  // namespace

std::optional<RecomputedGraph> recompute_values(const Graph& graph, NodeId peak) {
  return Recomputer(graph, peak).run();
}

}  // namespace bantam::compiler
