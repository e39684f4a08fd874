#include "compiler/spills.h"

#include <algorithm>
#include <functional>
#include <string>

#include "compiler/legalize.h"
#include "compiler/order.h"

namespace bantam::compiler {
namespace {

using graph::kNone;
using graph::NodeId;
using graph::ValueId;

/// A value that rests for fewer nodes gains nothing.
constexpr NodeId kLeastRest = 3;

/// By value: the nodes that read it, in order.
std::vector<std::vector<NodeId>> readers(const graph::Graph& graph) {
  std::vector<std::vector<NodeId>> result(graph.values.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const ValueId id : graph.nodes[n].inputs) {
      if (id == kNone) continue;
      auto& nodes = result[static_cast<std::size_t>(id)];
      if (nodes.empty() || nodes.back() != static_cast<NodeId>(n)) nodes.push_back(static_cast<NodeId>(n));
    }
  return result;
}

/// The longest rest among the accesses of a value. copy_out and copy_in are both false when none is worth a copy: a
/// value that is made or read once on either side of the rest lies where it rests.
Spill longest_rest(ValueId value, NodeId producer, const std::vector<NodeId>& readers) {
  Spill spill{.value = value};
  NodeId before = producer;
  NodeId longest = 0;
  for (std::size_t r = 0; r < readers.size(); ++r) {
    const NodeId rest = readers[r] - before;
    if (rest > longest) {
      longest = rest;
      spill.last = before;
      spill.next = readers[r];
      spill.copy_out = r > 0;
      spill.copy_in = r + 1 < readers.size();
    }
    before = readers[r];
  }
  if (longest < kLeastRest) spill.copy_out = spill.copy_in = false;
  return spill;
}

}  // namespace

std::vector<Spill> find_spills(const PlannedModel& model) {
  if (!model.instances.empty() || std::ranges::any_of(model.steps, [](const auto& s) { return s.variant == nullptr; }))
    return {};
  const std::vector<std::vector<NodeId>> read_by = readers(model.graph);
  std::vector<Spill> spills;
  for (std::size_t v = 0; v < model.graph.values.size(); ++v) {
    const std::int32_t block = model.value_blocks[v];
    if (block < 0 || model.blocks[static_cast<std::size_t>(block)].kind == PlanBlock::Kind::kOutput) continue;
    const graph::Value& value = model.graph.values[v];
    Spill spill = longest_rest(static_cast<ValueId>(v), value.producer, read_by[v]);
    if (!spill.copy_out && !spill.copy_in) continue;
    spill.worth = static_cast<double>(value.desc.bytes()) * static_cast<double>(spill.next - spill.last);
    spills.push_back(spill);
  }
  std::ranges::stable_sort(spills, std::greater<>(), &Spill::worth);
  return spills;
}

graph::Graph with_copies(const graph::Graph& graph, const Spill& spill) {
  graph::Graph result = graph;
  const auto nodes = static_cast<NodeId>(graph.nodes.size());
  const std::string name = graph.value(spill.value).name;
  std::vector<NodeId> order;
  ValueId resting = spill.value;
  NodeId out = kNone;
  NodeId in = kNone;
  if (spill.copy_out) {
    out = static_cast<NodeId>(result.nodes.size());
    resting = append_copy(result, spill.value, name + " at rest");
  }
  ValueId used = resting;
  if (spill.copy_in) {
    in = static_cast<NodeId>(result.nodes.size());
    used = append_copy(result, resting, name + " back");
  }
  for (NodeId n = spill.next; n < nodes; ++n)
    std::ranges::replace(result.nodes[static_cast<std::size_t>(n)].inputs, spill.value, used);
  for (NodeId n = 0; n < nodes; ++n) {
    if (n == spill.next && in != kNone) order.push_back(in);
    order.push_back(n);
    if (n == spill.last && out != kNone) order.push_back(out);
  }
  reorder(result, order);
  return result;
}

}  // namespace bantam::compiler
