// The lower bound: bytes that no placement can do without, because so much is alive at once.
//
// Called by solve.h to know when to stop searching, and by reports. With alignments the bound counts the padding that
// every stack of the live buffers must contain. Requires a valid problem (problem.h). Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/problem.h"

namespace bantam::plan {

/// Half-open range of steps.
struct StepRange {
  std::int64_t lower = 0;
  std::int64_t upper = 0;

  bool operator==(const StepRange&) const = default;
};

struct LowerBound {
  std::int64_t bytes = 0;
  std::vector<StepRange> peaks;            ///< maximal ranges of steps that need `bytes`, ascending; empty for 0 bytes
  std::vector<std::int32_t> peak_buffers;  ///< indices of what is alive (and not empty) in the first peak, ascending
};

LowerBound lower_bound(const Problem& problem);

/// Bytes needed at least in each section between neighbouring `times`, which must be sorted, without repetition, and
/// hold every lower and upper of the problem. One entry less than `times`; empty when there are no times.
std::vector<std::int64_t> section_bounds(const Problem& problem, const std::vector<std::int64_t>& times);

/// Every step at which a buffer begins or ends, sorted, without repetition.
std::vector<std::int64_t> event_times(const Problem& problem);

}  // namespace bantam::plan
