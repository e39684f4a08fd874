// How often a loop runs, where that follows from constants: a counter that starts at one, is stepped by one and
// compared with one, say, however the model spells it. Called by the importers for loops that end by a condition. Host
// only; a pure function whose work is bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "graph/graph.h"

namespace bantam::import {

/// Iterations until the body's condition (output 0) fails, the first counted, which must be known to run; nothing when
/// the condition depends on data, or is not settled within some ten thousand iterations. `body` is that of a
/// graph::kLoop; `initial[i]` is what the carried value i starts as, null when that is no constant.
std::optional<std::int64_t> count_iterations(const graph::Graph& body, std::span<const graph::Constant* const> initial);

}  // namespace bantam::import
