// The list of graph passes and the driver that runs them.
//
// A pass rewrites a verified graph into an equivalent verified graph: same ports, same states, same results (bit for
// bit unless the pass says otherwise). Each pass is one file, works for any graph, and is tested text to text. The list
// is run in order, once; a pass that needs a fixed point loops by itself.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bantam/error.h"
#include "graph/graph.h"

namespace bantam::passes {

struct Pass {
  std::string_view name;     ///< as --stop-after takes it
  std::string_view summary;  ///< one line for --help and ARCHITECTURE.md
  /// Returns whether anything changed.
  Result<bool> (*run)(graph::Graph& graph) = nullptr;
  /// The same without rules that hold only at the graph's own sizes; null when there are none.
  Result<bool> (*run_at_any_size)(graph::Graph& graph) = nullptr;
};

/// All passes in the order in which they run.
std::span<const Pass> all_passes();

struct PassOptions {
  std::string stop_after{};  ///< the last pass to run; empty: all; unknown: an Error that lists the names
  bool verify = false;       ///< verify the graph after every pass and name the pass that broke it
  bool any_size = false;     ///< the result must hold when dimensions of the model get other sizes
};

Result<void> run_passes(graph::Graph& graph, const PassOptions& options);

}  // namespace bantam::passes
