// Splitting work over Threads without allocation. Freestanding.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/op.h"

namespace bantam::ops {

/// Calls f(begin, end) for ranges that partition [0, total), possibly in parallel, each of at least `grain` items (but
/// for the last). Ranges begin at multiples of `grain`. f must not depend on where the ranges are cut.
template <typename F>
void parallel_ranges(const Threads& threads, std::int64_t total, std::int64_t grain, F&& f) {
  if (total <= 0) return;
  const std::int64_t grains = (total + grain - 1) / grain;
  const std::int64_t tasks = std::min<std::int64_t>(grains, std::max<std::int32_t>(threads.count, 1));
  if (tasks <= 1) {
    f(std::int64_t{0}, total);
    return;
  }
  struct Job {
    F& f;
    std::int64_t total, grain, grains, tasks;
  } job{f, total, grain, grains, tasks};
  threads.parallel_for(
      static_cast<std::size_t>(tasks),
      [](void* argument, std::size_t index) {
        const Job& j = *static_cast<const Job*>(argument);
        const auto i = static_cast<std::int64_t>(index);
        const std::int64_t begin = j.grains * i / j.tasks * j.grain;
        const std::int64_t end = std::min(j.grains * (i + 1) / j.tasks * j.grain, j.total);
        if (begin < end) j.f(begin, end);
      },
      &job);
}

}  // namespace bantam::ops
