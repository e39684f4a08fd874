#include "compiler/windows.h"

#include "ops/data/concat/concat.h"
#include "ops/data/slice/slice.h"

namespace bantam::compiler {

using graph::kNone;
using graph::NodeId;

std::vector<Window> find_windows(const graph::Graph& graph) {
  const graph::Uses uses(graph);
  std::vector<Window> windows;
  for (const graph::State& state : graph.states) {
    const NodeId slice = state.out == state.in || state.out == kNone ? kNone : graph.value(state.out).producer;
    // Whoever reads the next state cannot come before the slice.
    if (slice == kNone || !graph.node(slice).is(ops::kSlice) || !uses.of(state.out).empty()) continue;
    const graph::ValueId window = graph.node(slice).inputs[0];
    const NodeId join = graph.value(window).producer;
    if (join == kNone || !graph.node(join).is(ops::kConcat) || graph.node(join).inputs[0] != state.in ||
        uses.is_external(window))
      continue;
    windows.push_back({join, slice});
  }
  return windows;
}

std::vector<Precedence> window_precedences(const graph::Graph& graph) {
  const graph::Uses uses(graph);
  std::vector<Precedence> precedences;
  for (const Window& window : find_windows(graph))
    for (const graph::Uses::Use& use : uses.of(graph.node(window.slice).inputs[0]))
      if (use.node != window.slice) precedences.push_back({use.node, window.slice});
  return precedences;
}

}  // namespace bantam::compiler
