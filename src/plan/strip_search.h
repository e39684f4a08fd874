// Searches one strip for a placement within a target: many short tree searches with different preferences.
//
// A tree search that has not succeeded after some thousand nodes is usually stuck in a bad early choice, so the search
// restarts with another order, noise, and limits that grow slowly (Luby's sequence): in the end one run is long enough
// to search the whole tree, which proves that the target is impossible. A restart tries the deepest placement so far
// again, except in a random window of time which it is free to rearrange. Used by search.cpp. Deterministic in the
// seed, except where a deadline cuts it off. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/strip.h"
#include "plan/tree_search.h"

namespace bantam::plan {

class StripSearch {
 public:
  StripSearch(const Strip& strip, std::uint64_t seed);

  /// Looks for a placement with peak <= target (bytes, strip.base included), within `steps` elementary steps.
  /// `pulse` is called with the steps used by each restart.
  TreeSearch::Outcome run(std::int64_t target, std::int64_t steps, const Deadline& deadline,
                          const std::function<void(std::int64_t)>& pulse);

  /// After kFound: offset of each block in bytes, strip.base included.
  std::vector<std::int64_t> offsets() const;

 private:
  Guide next_guide(std::int32_t restart);
  void forget_window(std::vector<std::int64_t>& offsets);
  double noise(double spread);
  std::uint64_t random();

  const Strip& strip_;
  TreeSearch tree_;
  std::uint64_t random_state_;
  std::vector<std::int64_t> crowd_;  ///< per block, most units needed in any of its sections
  std::vector<std::int64_t> memory_;
  std::int32_t memory_depth_ = 0;
  std::int32_t idle_ = 0;  ///< restarts since the memory last improved
};

}  // namespace bantam::plan
