// Windows of streaming models: a state, rows that come to it, and the last rows of both, which are the next state.
//
//   window = concat(state, rows);  ... = f(window);  next state = slice(window)
// Such a window may lie where the state does (StorageOptions::windows): then nothing is copied but what the state
// keeps, once, to its front. That needs room behind the state and the slice to come last. Called by the planner. Pure
// functions.
#pragma once

#include <vector>

#include "compiler/order.h"
#include "graph/graph.h"

namespace bantam::compiler {

struct Window {
  graph::NodeId join;   ///< makes the window
  graph::NodeId slice;  ///< makes the next state
};

/// Those of a graph with one size, in the order of its states.
std::vector<Window> find_windows(const graph::Graph& graph);

/// All that reads a window comes before the slice that moves it. No order needs more for that: the slice writes where
/// the state is anyway.
std::vector<Precedence> window_precedences(const graph::Graph& graph);

}  // namespace bantam::compiler
