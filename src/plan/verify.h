// The independent verifier: decides whether a solution solves a problem, sharing no code with the planners or bounds.
//
// Called on every solution before it leaves the planner (solve.h) and by whoever received one from elsewhere. Takes any
// problem and any solution, valid or not. Thread rule: pure function.
#pragma once

#include "plan/problem.h"

namespace bantam::plan {

/// Succeeds when every buffer has an offset >= 0 that keeps its alignment and its fixed place, no two buffers that are
/// alive together overlap, the peak is max(offset + size), and it is within the problem's capacity if it has one. The
/// error names the buffer, or the two that collide.
Result<void> verify(const Problem& problem, const Solution& solution);

}  // namespace bantam::plan
