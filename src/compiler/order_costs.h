// A graph as an ordering problem (plan/order.h): which buffers its steps read and write, counted as they will be
// shared.
//
// Called by planned_model.cpp, which plans the orders that come out of it. Values that are views of one another are one
// buffer, steps whose results are views cost nothing, ports bound by the caller and states cost nothing, a kernel may
// write over operands that its footprint permits. Buffers count rounded to their alignment. What cannot be said in
// these terms (results written over a part of a buffer) makes the costs an estimate: `exact` is false, and only
// `relaxed` gives a bound that holds. With control flow there is only `relaxed`: steps of a body stay between the jumps
// around it, all others go where their operands allow, and what branches and loops hand on costs nothing, because other
// values may lie within it. Pure function.
#pragma once

#include <span>
#include <vector>

#include "compiler/flatten.h"
#include "compiler/order.h"
#include "compiler/storage.h"
#include "graph/graph.h"
#include "plan/order.h"

namespace bantam::compiler {

struct OrderCosts {
  plan::OrderProblem problem;  ///< empty with control flow
  bool exact = true;
  std::int64_t rounding = 0;  ///< the most that rounding adds to a buffer; a plan may do without it for one of them
  /// What may lie within other buffers costs nothing here: no order needs less than its bound. Set unless `exact`.
  plan::OrderProblem relaxed;
};

/// What the costs are read from: a flat graph in an order that is possible.
struct OrderSource {
  const graph::Graph& graph;
  const ControlFlow& flow;
  const std::vector<const ops::KernelVariant*>& variants;  ///< by node
  const std::vector<std::int64_t>& scratch;                ///< by node
  const StorageMap& views;                                 ///< of this graph, with nothing in place
  const StorageMap& shared;                                ///< of this graph, as it is planned
  const std::vector<bool>& counted;                        ///< by storage: part of the activations
  std::span<const Precedence> precedences;
  int threads = 1;
};

OrderCosts order_costs(const OrderSource& source);

}  // namespace bantam::compiler
