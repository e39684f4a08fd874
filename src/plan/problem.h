// The memory planning problem: buffers with a lifetime and a size, to be given offsets in one arena.
//
// The planner knows nothing else: no operators, no tensors. Whoever plans (the graph planner, the command line) writes
// a Problem; place.h, search.h and solve.h answer with a Solution; verify.h checks it. Lifetimes are half-open
// [lower, upper) in steps of any unit. `validate` bounds every number so that the sums and products below it cannot
// overflow; every other function of this layer requires a valid problem. Thread rule: values, no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bantam/error.h"

namespace bantam::plan {

inline constexpr std::int64_t kMaxBuffers = std::int64_t{1} << 17;
inline constexpr std::int64_t kMaxStep = std::int64_t{1} << 53;
inline constexpr std::int64_t kMaxBytes = std::int64_t{1} << 60;  ///< of one offset and of all sizes together
inline constexpr std::int64_t kMaxAlignment = std::int64_t{1} << 30;

struct Buffer {
  std::string id;
  std::int64_t lower = 0;                  ///< first step alive, 0 <= lower
  std::int64_t upper = 0;                  ///< first step no longer alive, lower < upper <= kMaxStep
  std::int64_t size = 0;                   ///< bytes; 0 is legal and occupies nothing
  std::int64_t alignment = 1;              ///< power of two, at most kMaxAlignment; the offset is a multiple of it
  std::optional<std::int64_t> fixed = {};  ///< the offset, where the caller has decided it
};

struct Problem {
  std::vector<Buffer> buffers;
  std::optional<std::int64_t> capacity = {};  ///< bytes a solution may use; a planner stops looking once it fits
};

/// Offsets in the order of Problem::buffers. peak = max(offset + size) over the buffers with size > 0, else 0.
struct Solution {
  std::vector<std::int64_t> offsets;
  std::int64_t peak = 0;
  std::string method;  ///< which planner found it
};

/// "'name' [lower, upper) of N bytes", for messages.
std::string describe(const Buffer& buffer);

/// Checks one buffer against the bounds stated above; the error names it.
Result<void> validate_buffer(const Buffer& buffer);

/// Checks every buffer, their number and their sum.
Result<void> validate(const Problem& problem);

}  // namespace bantam::plan
