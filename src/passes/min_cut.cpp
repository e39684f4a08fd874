#include "passes/min_cut.h"

#include <algorithm>

namespace bantam::passes {
namespace {

/// Layout problems need a handful of phases; a hostile graph must not keep the compiler busy.
constexpr int kMaxPhases = 64;

}  // namespace

void MinCut::add_edge(int from, int to, Cost capacity) {
  if (capacity == 0) return;
  edges_of_[static_cast<std::size_t>(from)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  edges_of_[static_cast<std::size_t>(to)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

bool MinCut::find_levels() {
  level_.assign(edges_of_.size(), -1);
  std::vector<int> queue{kSource};
  level_[kSource] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const int u = queue[i];
    for (const int e : edges_of_[static_cast<std::size_t>(u)]) {
      const Edge& edge = edges_[static_cast<std::size_t>(e)];
      int& level = level_[static_cast<std::size_t>(edge.to)];
      if (edge.capacity <= 0 || level >= 0) continue;
      level = level_[static_cast<std::size_t>(u)] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[kSink] >= 0;
}

/// Saturates the path of edges; returns what went through. Leaves in `path` the part before the first full edge.
MinCut::Cost MinCut::push_path(std::vector<int>& path) {
  Cost amount = kInfinite;
  for (const int e : path) amount = std::min(amount, edges_[static_cast<std::size_t>(e)].capacity);
  std::size_t keep = path.size();
  for (std::size_t i = path.size(); i-- > 0;) {
    edges_[static_cast<std::size_t>(path[i])].capacity -= amount;
    edges_[static_cast<std::size_t>(path[i] ^ 1)].capacity += amount;
    if (edges_[static_cast<std::size_t>(path[i])].capacity == 0) keep = i;
  }
  path.resize(keep);
  return amount;
}

void MinCut::block_flow() {
  next_.assign(edges_of_.size(), 0);
  std::vector<int> path;
  while (true) {
    const int u = path.empty() ? kSource : edges_[static_cast<std::size_t>(path.back())].to;
    if (u == kSink) {
      push_path(path);
      continue;
    }
    const auto& out = edges_of_[static_cast<std::size_t>(u)];
    std::size_t& next = next_[static_cast<std::size_t>(u)];
    const auto usable = [&](int e) {
      const Edge& edge = edges_[static_cast<std::size_t>(e)];
      return edge.capacity > 0 && level_[static_cast<std::size_t>(edge.to)] == level_[static_cast<std::size_t>(u)] + 1;
    };
    while (next < out.size() && !usable(out[next])) ++next;
    if (next < out.size()) {
      path.push_back(out[next]);
    } else if (path.empty()) {
      return;
    } else {
      path.pop_back();
      level_[static_cast<std::size_t>(u)] = -1;  // a dead end in this phase
    }
  }
}

std::vector<bool> MinCut::solve() {
  std::vector<bool> ones(edges_of_.size(), false);
  for (int phase = 0; find_levels(); ++phase) {
    if (phase == kMaxPhases) return ones;
    block_flow();
  }
  // Ones: what can still reach the sink, the smallest sink side of all minimum cuts.
  std::vector<int> queue{kSink};
  ones[kSink] = true;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const int e : edges_of_[static_cast<std::size_t>(queue[i])]) {
      const int from = edges_[static_cast<std::size_t>(e)].to;
      if (ones[static_cast<std::size_t>(from)] || edges_[static_cast<std::size_t>(e ^ 1)].capacity <= 0) continue;
      ones[static_cast<std::size_t>(from)] = true;
      queue.push_back(from);
    }
  }
  return ones;
}

}  // namespace bantam::passes
