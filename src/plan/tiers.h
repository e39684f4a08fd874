// Several memories for one set of buffers: which buffer lies in which memory, and where.
//
// Called by the fleet compiler for every model when the user has named memories. Each
// buffer lies whole in one memory. What counts is the sum over all buffers of accessed bytes times the cost of their
// memory; where a memory has no room for all that would like to be there, those stay that are accessed most per byte
// and step they occupy. Every memory is a placement problem of its own, solved and verified as such (solve.h). Exact
// only where everything fits; else greedy with improvement. Deterministic, pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/problem.h"
#include "plan/solve.h"

namespace bantam::plan {

struct Tier {
  std::int64_t capacity = 0;  ///< bytes
  double cost = 1;            ///< of a byte accessed
};

struct TierPlan {
  std::vector<std::uint32_t> tiers;   ///< by buffer
  std::vector<std::int64_t> offsets;  ///< by buffer, within its tier
  std::vector<std::int64_t> peaks;    ///< by tier; that of the last may exceed its capacity: see fits
  bool fits = false;                  ///< whether the last tier has room for what the others had none for
  double cost = 0;
};

struct TierOptions {
  std::int64_t step_budget = kDefaultSearchSteps / 100;  ///< of each placement that is tried
  int improvements = 64;                                 ///< buffers that are tried once more in a faster tier
};

/// `accessed`: bytes read or written, by buffer. `tiers`: at least one, the cheapest first. Fails for an invalid
/// problem only; buffers with a fixed offset are not supported and make it invalid.
Result<TierPlan> plan_tiers(const Problem& problem, std::span<const std::int64_t> accessed, std::span<const Tier> tiers,
                            const TierOptions& options = {});

}  // namespace bantam::plan
