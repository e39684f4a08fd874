// Ways to plan one graph, and the search for the best of them: which order, what is shared, what overlaps, where the
// bytes lie. Called by planned_model.cpp. Host only; values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/order_costs.h"
#include "compiler/planned_model.h"

namespace bantam::compiler {

struct Way {
  PlanChoice choice{};
  std::vector<graph::NodeId> order{};                     ///< empty: the one that the choice names
  std::vector<graph::NodeId> named{};                     ///< that one, where it is known already
  std::vector<std::vector<graph::NodeId>> body_orders{};  ///< see InnerOrders; none: as the choice says
  std::vector<bool> overlaps{};                           ///< see StorageOptions
  std::vector<bool> other_views{};                        ///< see StorageOptions
  std::vector<bool> windows{};                            ///< see StorageOptions
  std::vector<bool> apart{};                              ///< see StorageOptions
};

/// "model order, concat copies".
std::string describe(const Way& way);

/// The order that a way means, as a permutation of the graph's nodes.
Result<std::vector<graph::NodeId>> order_of(const graph::Graph& graph, const PlanOptions& options, const Way& way);

/// Plans a legal graph in one way; `search` says how long to look for places. `costs`, unless null, receives what other
/// orders of the graph would cost; nothing for a graph with control flow.
Result<PlannedModel> plan_in_one_way(const graph::Graph& graph, const PlanOptions& options, const Way& way,
                                     const plan::SolveOptions& search, std::optional<OrderCosts>* costs);

/// Tries ways until a plan meets all bounds or its effort is spent; keeps the smallest.
Result<PlannedModel> plan_in_the_best_way(const graph::Graph& graph, const PlanOptions& options);

}  // namespace bantam::compiler
