// Families of sizes: a model that the user wants planned once for each of several sizes (ModelSpec::sizes).
//
// Called by the compiler and by whoever pairs sessions with what feeds them. Each size becomes a model of its own with
// its dimensions fixed, so that its plan owes nothing to larger sizes; the package stores equal weights once. Pure
// function; host only.
#pragma once

#include <cstddef>
#include <vector>

#include "bantam/compiler.h"

namespace bantam::compiler {

/// More plans of one model are refused: each takes time to make.
inline constexpr std::size_t kMaxFamily = 64;

struct ExpandedFleet {
  FleetSpec spec;                    ///< no model has `sizes`
  std::vector<std::size_t> origins;  ///< by model: its index in the fleet before
};

/// Fails for a size that is no size, is named twice, or is fixed or bounded elsewhere, and for a session of a family
/// that does not say which size it has.
Result<ExpandedFleet> expand_sizes(const FleetSpec& fleet);

}  // namespace bantam::compiler
