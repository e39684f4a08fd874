#include "compiler/body_orders.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "compiler/order.h"
#include "compiler/order_costs.h"
#include "compiler/select.h"
#include "compiler/storage.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;

std::int64_t count_bodies(const Graph& graph) {
  std::int64_t count = 0;
  for (const Node& node : graph.nodes)
    for (const Graph& body : node.bodies) count += 1 + count_bodies(body);
  return count;
}

struct Found {
  std::vector<NodeId> order;
  std::int64_t peak = 0;
};

class InnerSearch {
 public:
  InnerSearch(const PlanOptions& options, const plan::OrderOptions& search) : options_(options), search_(search) {}

  /// Appends the orders of the bodies to `bodies`, puts them into these orders, and searches the graph's own.
  Result<Found> run(Graph& graph, std::vector<bool> free_inputs, std::vector<std::vector<NodeId>>& bodies) {
    std::vector<std::int64_t> inner(graph.nodes.size(), 0);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      for (Graph& body : graph.nodes[n].bodies) {
        const std::size_t own = bodies.size();
        bodies.emplace_back();
        auto found = run(body, std::vector<bool>(body.inputs.size(), true), bodies);
        if (!found) return found;
        inner[n] = std::max(inner[n], found->peak);
        reorder(body, found->order);
        bodies[own] = std::move(found->order);
      }
    }
    keep_own_results(graph);
    return search(graph, std::move(free_inputs), inner);
  }

 private:
  /// What a body hands on without computing it, or twice, is no buffer of its own.
  static void keep_own_results(Graph& graph) {
    std::unordered_set<graph::ValueId> seen;
    std::erase_if(graph.outputs, [&](const graph::Port& port) {
      return graph.value(port.value).producer == graph::kNone || !seen.insert(port.value).second;
    });
  }

  Result<Found> search(const Graph& graph, std::vector<bool> free_inputs,
                       const std::vector<std::int64_t>& inner) const {
    const Graph* const sizes[] = {&graph};
    const auto selected = select_kernels(sizes, {.backend = options_.backend,
                                                 .kernels = options_.kernels,
                                                 .target = options_.target,
                                                 .sparing = options_.sparing,
                                                 .threads = options_.threads,
                                                 .stores = options_.stores});
    if (!selected) return fail(selected.error());
    const std::vector<const ops::KernelVariant*> variants = variants_of(*selected);
    StorageOptions storage;
    storage.preserved_inputs = free_inputs;
    storage.threads = options_.threads;
    const StorageMap shared = map_storage(graph, variants, storage);
    storage.in_place = false;
    const StorageMap views = map_storage(graph, variants, storage);
    std::vector<bool> counted;
    for (const Storage& s : views.storages) counted.push_back(counts(s, free_inputs));
    const ControlFlow straight;
    const std::vector<std::int64_t> scratch = scratch_of(graph, variants, inner);
    const OrderCosts costs =
        order_costs({graph, straight, variants, scratch, views, shared, counted, {}, options_.threads});
    const plan::OrderResult found = plan::search_order(costs.problem, search_);
    Found result{std::vector<NodeId>(graph.nodes.size()), found.peak};
    std::iota(result.order.begin(), result.order.end(), 0);
    if (found.peak < plan::peak_of_order(costs.problem, result.order)) result.order = found.order;
    return result;
  }

  bool counts(const Storage& s, const std::vector<bool>& free_inputs) const {
    const auto i = static_cast<std::size_t>(s.index);
    if (s.members.empty()) return false;
    if (s.kind == StorageKind::kInput) return i >= free_inputs.size() || !free_inputs[i];
    return s.kind == StorageKind::kActivation || s.kind == StorageKind::kOutput;
  }

  /// What kernels cannot do without, and what the bodies of a node need.
  std::vector<std::int64_t> scratch_of(const Graph& graph, const std::vector<const ops::KernelVariant*>& variants,
                                       const std::vector<std::int64_t>& inner) const {
    std::vector<std::int64_t> scratch = inner;
    for (std::size_t n = 0; n < scratch.size(); ++n) {
      if (variants[n] == nullptr) continue;
      const graph::OperandTables tables = graph::operand_tables(graph, graph.nodes[n]);
      scratch[n] = ops::footprint(*variants[n], tables.call(graph.nodes[n]), options_.threads).scratch_bytes;
    }
    return scratch;
  }

  const PlanOptions& options_;
  const plan::OrderOptions& search_;
};

void reorder_next(Graph& graph, const std::vector<std::vector<NodeId>>& orders, std::size_t& next) {
  for (Node& node : graph.nodes) {
    for (Graph& body : node.bodies) {
      const std::vector<NodeId>& order = orders[next++];
      // Its own bodies come in the order that the search found them in.
      reorder_next(body, orders, next);
      reorder(body, order);
    }
  }
}

}  // namespace

Result<InnerOrders> search_inner_orders(const Graph& graph, const PlanOptions& options,
                                        const plan::OrderOptions& search) {
  plan::OrderOptions share = search;
  share.step_budget /= 1 + count_bodies(graph);
  Graph searched = graph;
  InnerOrders result;
  auto found = InnerSearch(options, share).run(searched, options.external_inputs, result.bodies);
  if (!found) return fail(std::move(found.error()));
  result.order = std::move(found->order);
  return result;
}

void reorder_bodies(Graph& graph, const std::vector<std::vector<NodeId>>& orders) {
  std::size_t next = 0;
  if (!orders.empty()) reorder_next(graph, orders, next);
}

}  // namespace bantam::compiler
