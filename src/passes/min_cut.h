// Minimises a sum of costs over binary variables by a minimum cut.
//
// Costs depend on one variable, or on a pair as "u is 0 and v is 1"; exactly such sums are cut functions of a directed
// graph, so the minimum is exact (Kolmogorov and Zabih, 2004). Of several minima the one with the fewest ones wins:
// when all zeros is a minimum, it is the answer. Solved by Dinic's algorithm without recursion. Plain values, one use.
#pragma once

#include <cstdint>
#include <vector>

namespace bantam::passes {

class MinCut {
 public:
  using Cost = std::int64_t;
  static constexpr Cost kInfinite = Cost{1} << 60;

  MinCut() : edges_of_(2) {}

  int add_variable() {
    edges_of_.emplace_back();
    return static_cast<int>(edges_of_.size()) - 1;
  }
  /// Adds `cost` when v is 0; when v is 1; when u is 0 and v is 1. Costs are >= 0.
  void cost_of_0(int v, Cost cost) { add_edge(v, kSink, cost); }
  void cost_of_1(int v, Cost cost) { add_edge(kSource, v, cost); }
  void cost_of_01(int u, int v, Cost cost) { add_edge(u, v, cost); }

  /// The variables' values, by index as add_variable gave it. Gives all zeros when the work bound is reached.
  std::vector<bool> solve();

 private:
  struct Edge {
    int to;
    Cost capacity;
  };
  static constexpr int kSource = 0;
  static constexpr int kSink = 1;

  void add_edge(int from, int to, Cost capacity);
  bool find_levels();
  void block_flow();
  Cost push_path(std::vector<int>& path);

  std::vector<Edge> edges_;  // edge e and its reverse e ^ 1
  std::vector<std::vector<int>> edges_of_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
};

}  // namespace bantam::passes
