// What the exact search works on: a strip of sections to be filled with blocks, in small whole units.
//
// A strip is one independent part of a Problem: buffers connected through time. Steps are compressed to sections (one
// per largest set of buffers alive together: two buffers collide in time exactly when they share a section), bytes to
// units (their greatest common divisor, which loses nothing, see `Scale`). Called by search.cpp. Thread rule: values.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/problem.h"

namespace bantam::plan {

struct Block {
  std::int32_t begin = 0;  ///< first section
  std::int32_t end = 0;    ///< one past the last section; begin < end
  std::int64_t size = 0;   ///< units, positive; `bytes` rounded up to the strip's alignment
  std::int64_t bytes = 0;
  std::int64_t alignment = 1;  ///< units
  std::int64_t fixed = -1;     ///< offset in units, -1 when free
};

struct Strip {
  std::vector<std::int32_t> buffers;  ///< index in the problem of each block
  std::vector<Block> blocks;
  std::int32_t sections = 0;
  std::int64_t unit = 1;       ///< bytes per unit
  std::int64_t alignment = 1;  ///< smallest alignment in bytes; block sizes are rounded up to it
  std::int64_t base = 0;       ///< bytes below the strip, taken by buffers that span all of it
  std::int64_t bound = 0;      ///< lower bound of the peak, bytes, `base` included
  bool exact = true;           ///< no size is rounded: every canonical peak is base plus whole units
};

/// The parts of a problem that can be solved one by one, and the offsets that are settled already.
struct Decomposition {
  std::vector<Strip> strips;
  /// Per buffer: the offset of those that belong to no strip (empty ones, and ones that lie below a strip).
  std::vector<std::int64_t> settled;
};

/// Splits a valid problem. An optimal solution of every strip, with `settled`, is an optimal solution of the problem.
Decomposition decompose(const Problem& problem);

}  // namespace bantam::plan
