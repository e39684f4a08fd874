// The planner's front door: a Problem in, a verified Solution out, with what is known about the optimum.
//
// Called by the graph planner and by `bantam plan --problem`. Splits the problem into independent parts, places each
// greedily (place.h), and where that misses the goal searches the part (strip_search.h) until the goal is met, proven
// impossible, or the budget is spent; what remains is narrowed by bisection. The goal is the capacity if there is one,
// else the lower bound. Every solution has passed verify.h. Deterministic, unless a deadline cuts the search off.
// Thread rule: pure function; the callback runs on the caller's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "plan/bounds.h"
#include "plan/problem.h"

namespace bantam::plan {

struct SolveProgress {
  std::int64_t peak = 0;    ///< best so far, bytes
  std::int64_t bound = 0;   ///< proven so far, bytes
  std::int64_t target = 0;  ///< peak that is searched for at the moment
  std::int64_t steps = 0;   ///< elementary steps used
  std::int64_t step_budget = 0;
};

/// Elementary search steps of the default mode: well below a second.
inline constexpr std::int64_t kDefaultSearchSteps = 300'000'000;
/// For a caller who limits the time instead.
inline constexpr std::int64_t kUnlimitedSearchSteps = std::int64_t{1} << 60;

struct SolveOptions {
  std::int64_t step_budget = kDefaultSearchSteps;  ///< about a nanosecond each; 0 for greedy placement only
  std::optional<std::chrono::steady_clock::time_point> deadline = {};  ///< hard stop
  std::uint64_t seed = 1;
  std::function<void(const SolveProgress&)> progress = {};  ///< called now and then while searching
};

struct SolveResult {
  Solution solution;
  LowerBound lower_bound;         ///< what is alive at once
  std::int64_t proven_bound = 0;  ///< no solution has a smaller peak; >= lower_bound.bytes
  std::int64_t steps = 0;         ///< elementary search steps used

  bool meets_lower_bound() const { return solution.peak == lower_bound.bytes; }
  bool is_optimal() const { return solution.peak == proven_bound; }
};

/// Fails when the problem is invalid or its fixed buffers collide. A capacity that is not reached is no failure here:
/// the smallest peak found is returned, and proven_bound tells whether the capacity is impossible.
Result<SolveResult> solve(const Problem& problem, const SolveOptions& options = {});

}  // namespace bantam::plan
