// Placement of buffers that are not rectangles: several parts, each alive for some steps, at fixed distances from one
// another. Results that overlap their operands make such buffers: at one step the operand needs one stretch of bytes,
// at the next the result another. Called by the planner where there are any; everything else is solved by plan/solve.h.
// Host only, pure, deterministic.
#pragma once

#include <cstdint>
#include <vector>

namespace bantam::compiler {

/// Bytes [offset, offset + bytes) of a buffer in use during steps [lower, upper).
struct Part {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

struct Composite {
  std::vector<Part> parts;  ///< of one buffer, none twice at one step
  std::int64_t alignment = 1;
};

struct CompositePlan {
  std::vector<std::int64_t> offsets;
  std::int64_t peak = 0;
  std::int64_t bound = 0;      ///< no placement has a smaller peak
  std::int64_t peak_step = 0;  ///< a step at which so much is alive, or the first one of the longest buffer
};

/// `rounds`: how often to look for a better order of placing than by size, bytes times steps, or time.
CompositePlan place_composites(const std::vector<Composite>& composites, int rounds);

}  // namespace bantam::compiler
