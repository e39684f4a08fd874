// Control flow as one list of steps: nodes with bodies (graph/control.h) become the nodes of their bodies between nodes
// that jump, so that one liveness analysis, one arena and one verifier serve all.
//
//   if    branch(condition)              loop   copies of the initial values
//         then ..., copies of results           loop_begin(trips, condition; iteration)
//         jump                                  enter: the carried values
//         else ..., copies of results           body ..., copies of the next values
//         join: the results                     loop_end(trips, condition, iteration)
//                                               exit: the results
// The flat graph is in static single assignment form like any other; join, enter and exit stand for no step. What the
// copies write and what join, enter and exit say are the same bytes (FlatGraph::shared), which compiler/storage.h sees
// to, and with it elides the copies that it can. Times: a value that a loop reads, made before it, lives to its end;
// values of opposite branches never live together (Exclusion).
// Host only; a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace bantam::compiler {

/// What a node of a flat graph is.
enum class FlatKind : std::uint8_t { kCompute, kBranch, kJump, kJoin, kLoopBegin, kEnter, kLoopEnd, kExit };

/// Nodes [first, last) that run only when nodes [last, end) do not.
struct Exclusion {
  std::int32_t first = 0;
  std::int32_t last = 0;
  std::int32_t end = 0;
};

/// Nodes [first, last] that run again and again; the last is the loop_end.
struct LoopRange {
  std::int32_t first = 0;
  std::int32_t last = 0;
};

/// A copy that need not run when its result may lie where its operand does.
struct ControlCopy {
  graph::NodeId node = graph::kNone;
  graph::ValueId carried = graph::kNone;  ///< the value that the next iteration reads there; none outside loops
};

struct ControlFlow {
  std::vector<FlatKind> kinds;        ///< by node; empty for a graph without control flow
  std::vector<std::int32_t> targets;  ///< by node: where branch, jump and loop_begin go, and loop_end back to
  std::vector<std::int32_t> limits;   ///< by node: most iterations, for loop_begin and loop_end
  std::vector<Exclusion> exclusions;
  std::vector<LoopRange> loops;  ///< inner ones before those around them
  std::vector<ControlCopy> copies;
  std::vector<std::vector<graph::ValueId>> shared;  ///< values that are the same bytes

  FlatKind kind(std::size_t node) const { return kinds.empty() ? FlatKind::kCompute : kinds[node]; }
  /// True for nodes that stand for a step without a kernel.
  bool jumps(std::size_t node) const {
    const FlatKind k = kind(node);
    return k == FlatKind::kBranch || k == FlatKind::kJump || k == FlatKind::kLoopBegin || k == FlatKind::kLoopEnd;
  }
  /// True for nodes that stand for no step.
  bool is_mark(std::size_t node) const {
    const FlatKind k = kind(node);
    return k == FlatKind::kJoin || k == FlatKind::kEnter || k == FlatKind::kExit;
  }
};

struct FlatGraph {
  graph::Graph graph;
  ControlFlow flow;
  std::vector<graph::NodeId> sources;  ///< by node: which node of the graph it comes from
};

/// Requires a verified, legal graph in execution order. Graphs without control flow stay as they are.
FlatGraph flatten(graph::Graph graph);

/// Operands of a loop_begin and loop_end before the values that they only keep alive.
inline constexpr std::size_t kTripOperand = 0;
inline constexpr std::size_t kConditionOperand = 1;
inline constexpr std::size_t kIterationOperand = 2;  ///< of a loop_end, which writes it

}  // namespace bantam::compiler
