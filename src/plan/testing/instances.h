// Problems for the planner's tests: random ones, hard ones with a known optimum, and the optimum of tiny ones by trying
// everything. All deterministic in their seed. Test support only.
#pragma once

#include <cstdint>

#include "plan/problem.h"

namespace bantam::plan::testing {

struct RandomOptions {
  int buffers = 10;
  std::int64_t steps = 20;         ///< lifetimes lie in [0, steps)
  std::int64_t max_size = 64;      ///< sizes are 0 to max_size bytes
  std::int64_t max_alignment = 1;  ///< alignments are powers of two up to this
  bool fix_some = false;           ///< some buffers get fixed offsets that do not collide
};

Problem random_problem(std::uint64_t seed, const RandomOptions& options);

/// Cuts a rectangle of `steps` by `bytes` into about `pieces` buffers, so that the optimum and the lower bound are
/// `bytes` and no byte is free at any step. Sizes are multiples of `unit`.
Problem cut_rectangle(std::uint64_t seed, int pieces, std::int64_t steps, std::int64_t bytes, std::int64_t unit);

/// A problem whose lower bound is `bytes` at every step: at each step some live buffers end and others of the same
/// total size begin. What ends need not lie together, so the optimum may be above the bound.
Problem full_timeline(std::uint64_t seed, std::int64_t steps, std::int64_t bytes, std::int64_t max_size);

/// The smallest peak, found by trying every offset of every buffer. For a handful of buffers of a few bytes.
std::int64_t brute_force_peak(const Problem& problem);

}  // namespace bantam::plan::testing
