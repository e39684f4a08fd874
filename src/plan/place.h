// Greedy placement: several orders, each buffer into a gap between those placed before; the smallest result is kept.
//
// The quick half of the planner; search.h closes what gap to the lower bound remains. Fixed buffers are placed first.
// All planners are deterministic: ties are broken by the buffer's index. Requires a valid problem (problem.h) whose
// fixed buffers do not collide. Capacity is not looked at. Cost: per order O(n^2) simple steps at worst, a few tens of
// milliseconds for 10,000 buffers. Thread rule: pure functions.
#pragma once

#include <span>
#include <string_view>

#include "plan/problem.h"

namespace bantam::plan {

/// What decides which buffer is placed next; the largest first except where noted.
enum class GreedyOrder {
  kSize,       ///< bytes
  kArea,       ///< bytes times lifetime
  kLifetime,   ///< length of the lifetime
  kStart,      ///< first step, earliest first, as an allocator would meet them
  kConflict,   ///< bytes of all buffers alive together with it
  kBreadth,    ///< most bytes alive at any of its steps, then bytes
  kTightArea,  ///< most bytes alive at any of its steps, then bytes times lifetime
};

enum class Fit {
  kFirst,  ///< the lowest gap that is large enough
  kBest,   ///< the smallest gap that is large enough
};

Solution place_greedy(const Problem& problem, GreedyOrder order, Fit fit);

/// Grows all columns of time together: next comes always the buffer that can lie lowest, the largest area among those.
Solution place_skyline(const Problem& problem);

/// Places in the order given, a permutation of the buffers' indices (fixed buffers still come first).
Solution place_in_order(const Problem& problem, std::span<const std::int32_t> order, Fit fit, std::string_view method);

/// Runs every planner above and keeps the smallest peak, the first on ties; stops early at `good_enough` bytes or less.
/// When the problem is so large that one planner already takes long, the remaining ones are skipped.
Solution place_best(const Problem& problem, std::int64_t good_enough = 0);

}  // namespace bantam::plan
