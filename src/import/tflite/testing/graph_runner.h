// Runs a graph with reference kernels, one node at a time, keeping its states between runs. For tests of importers.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "graph/builder.h"

namespace bantam::import::tflite::testing {

class GraphRunner {
 public:
  /// `graph` must outlive the runner.
  explicit GraphRunner(const graph::Graph& graph);

  /// All states as the graph initialises them.
  void reset();
  /// Element bytes of every output by name, for element bytes of every input.
  Result<std::map<std::string, std::vector<std::byte>>> run(
      const std::map<std::string, std::vector<std::byte>>& inputs);

 private:
  const graph::Graph& graph_;
  std::vector<std::vector<std::byte>> states_;
};

}  // namespace bantam::import::tflite::testing
