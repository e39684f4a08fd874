// What less memory costs: plans of one fleet from the fastest to the smallest.
//
// Called by `bantam plan --frontier`. Host only; deterministic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bantam/compiler.h"
#include "bantam/error.h"

namespace bantam::compiler {

struct FrontierPoint {
  std::uint64_t arena_bytes = 0;
  std::int64_t work = 0;          ///< multiply-accumulates of one invoke of every model
  std::int64_t bytes_copied = 0;  ///< more than without reductions
  std::string how;                ///< the reductions, one after another; empty: none
};

/// Compiles with smaller and smaller budgets until nothing gets smaller. Points in the order of falling memory; the
/// first is the plan without a budget, each behind the second costs more work or copies than the one before it, or it
/// is left out. `fleet.budget` is not looked at.
Result<std::vector<FrontierPoint>> frontier(const FleetSpec& fleet, const CompileOptions& options);

}  // namespace bantam::compiler
