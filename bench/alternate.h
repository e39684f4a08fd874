// Times two ways of doing the same work against each other, block by block in turn, so that both see the same machine:
// what its other load, its clock frequency and its caches do to one they do to the other.
#pragma once

#include <cstdint>
#include <functional>

#include "bantam/error.h"

namespace bantam::bench {

struct Side {
  std::function<void()> prepare;  ///< before every call, outside the clock
  std::function<Result<void>()> run;
};

struct AlternateOptions {
  std::int64_t rounds = 15;        ///< pairs of blocks
  double block_seconds = 0.02;     ///< aim for one block of the slower side
  std::int64_t max_calls = 20000;  ///< per block
};

/// Times are microseconds per call. Ratios are first to second, of the medians of a round's two blocks.
struct Alternation {
  double first_us = 0;    ///< median of all calls
  double second_us = 0;   ///< median of all calls
  double ratio = 0;       ///< median over the rounds
  double ratio_low = 0;   ///< first quartile over the rounds
  double ratio_high = 0;  ///< third quartile
  std::int64_t rounds = 0;
  std::int64_t calls = 0;        ///< per block
  std::int64_t preemptions = 0;  ///< times the kernel took the processor from this thread while the clock ran
};

/// Which side begins changes from round to round. Both must have run at least once before.
Result<Alternation> alternate(const Side& first, const Side& second, const AlternateOptions& options);

}  // namespace bantam::bench
