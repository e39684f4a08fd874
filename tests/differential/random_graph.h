// Random small graphs over all core operators, with data to run them on.
//
// What ops/testing/sampling.h draws is chained: operands are taken from the values that are there, so that views,
// operands shared by several readers, results in place, concats, states, constants that fold, several outputs, empty
// tensors and scalars come about by themselves. Every node is evaluated when it is added; one that faults on its data
// or leaves the numbers that floats can tell apart is not taken. Everything follows from the seed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/testing/interpret.h"

namespace bantam::testing {

using Tensors = std::map<std::string, graph::testing::HostTensor>;

struct Sample {
  graph::Graph graph;
  std::vector<Tensors> rounds{};           ///< inputs of one invoke after another
  std::int64_t free_dim = 0;               ///< dimensions of this size may be smaller ones too; 0: there are none
  std::map<std::string, int> operators{};  ///< what was drawn, folded nodes included
};

Sample random_sample(std::uint64_t seed);

/// What every value is in every round, by "v<id>"; fewer rounds where one faults.
std::vector<Tensors> all_values(const Sample& sample);

/// Does the same with as little as possible of the graph: `fails` says what is wrong with a sample, or nothing.
Sample shrink(Sample sample, const std::function<std::string(const Sample&)>& fails);

/// The graph, its inputs' data and states, for a report.
std::string describe(const Sample& sample);

}  // namespace bantam::testing
