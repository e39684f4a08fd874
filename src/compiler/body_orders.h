// Orders of graphs with branches and loops: each body is searched by itself, from the innermost on, and the graph
// around it takes a node with bodies as one step whose scratch is what its bodies need.
//
// Called by ways.cpp, which plans what comes out; the orders of other graphs come from order_costs.h. A body's inputs
// cost nothing in it: most live outside for as long as the body runs. Host only; deterministic unless a deadline cuts
// it off.
#pragma once

#include <cstdint>
#include <vector>

#include "bantam/error.h"
#include "compiler/planned_model.h"
#include "graph/graph.h"
#include "plan/order.h"

namespace bantam::compiler {

struct InnerOrders {
  std::vector<graph::NodeId> order;                ///< of the graph's own nodes
  std::vector<std::vector<graph::NodeId>> bodies;  ///< of each body's, a node's bodies before those of the next node
};

/// `graph` is legal. Bodies keep their order where no better one is found.
Result<InnerOrders> search_inner_orders(const graph::Graph& graph, const PlanOptions& options,
                                        const plan::OrderOptions& search);

/// Puts the bodies of a graph whose own nodes stand as they did into these orders.
void reorder_bodies(graph::Graph& graph, const std::vector<std::vector<graph::NodeId>>& orders);

}  // namespace bantam::compiler
