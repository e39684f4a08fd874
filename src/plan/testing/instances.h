// Problems for the planner's tests: random ones, hard ones with a known optimum, and the optimum of tiny ones by trying
// everything. All deterministic in their seed. Test support only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

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

struct CutOptions {
  int buffers = 200;
  std::int64_t side = 1024;  ///< units of time and of bytes of the rectangle
  std::int64_t unit = 1024;  ///< steps and bytes per unit
  double by_time = 0.5;      ///< share of cuts across time
  bool square = false;       ///< cut the longer side near its middle, instead of anywhere
  double removed = 0;        ///< share of the pieces that is taken out again
};

/// Instances like those of the MiniMalloc benchmark (ASPLOS 2023): a square cut into pieces of about equal area, always
/// the largest first, some of them taken out. All buffers fit into side * unit bytes; the lower bound may be smaller.
Problem cut_square(std::uint64_t seed, const CutOptions& options);

/// One way to cut squares; `cut.buffers` is the caller's.
struct CutFamily {
  std::string_view name;
  CutOptions cut;
};

/// Families with the statistics of the six public instances that are known (lifetimes, sizes, share of the square that
/// is in use), and harder ones with less room than any of those.
std::span<const CutFamily> cut_families();

/// A problem whose lower bound is `bytes` at every step: at each step some live buffers end and others of the same
/// total size begin. What ends need not lie together, so the optimum may be above the bound.
Problem full_timeline(std::uint64_t seed, std::int64_t steps, std::int64_t bytes, std::int64_t max_size);

/// The smallest peak, found by trying every offset of every buffer. For a handful of buffers of a few bytes.
std::int64_t brute_force_peak(const Problem& problem);

}  // namespace bantam::plan::testing
