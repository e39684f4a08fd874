// Splitting work over Threads without allocation. Freestanding.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/op.h"

namespace bantam::ops {

/// How finely work is cut: about `least` items are worth a thread, and ranges begin at multiples of `step` of them.
struct Grain {
  std::int64_t least = 1;
  std::int64_t step = 1;

  constexpr Grain(std::int64_t items) noexcept : least(items), step(items) {}
  constexpr Grain(std::int64_t least_items, std::int64_t step_items) noexcept : least(least_items), step(step_items) {}
};

/// What a byte costs that another processor has just written, by a byte of weights, which all of them read.
inline constexpr std::int64_t kCostOfHandingOver = 4;

/// Calls f(slot, begin, end) for ranges that partition [0, total), possibly in parallel and of about equal size, as the
/// grain says. No two calls have the same slot, 0 <= slot < threads.count: it selects a part of the scratch. f must not
/// depend on where the ranges are cut.
template <typename F>
void parallel_slots(const Threads& threads, std::int64_t total, Grain grain, F&& f) {
  if (total <= 0) return;
  const std::int64_t worth = (total + grain.least - 1) / grain.least;
  const std::int64_t steps = (total + grain.step - 1) / grain.step;
  const std::int64_t tasks = std::min<std::int64_t>({worth, steps, std::max<std::int32_t>(threads.count, 1)});
  if (tasks <= 1) {
    f(std::int64_t{0}, std::int64_t{0}, total);
    return;
  }
  struct Job {
    F& f;
    std::int64_t total, step, steps, tasks;
  } job{f, total, grain.step, steps, tasks};
  threads.parallel_for(
      static_cast<std::size_t>(tasks),
      [](void* argument, std::size_t index) {
        const Job& j = *static_cast<const Job*>(argument);
        const auto i = static_cast<std::int64_t>(index);
        const std::int64_t begin = j.steps * i / j.tasks * j.step;
        const std::int64_t end = std::min(j.steps * (i + 1) / j.tasks * j.step, j.total);
        if (begin < end) j.f(i, begin, end);
      },
      &job);
}

/// Bytes of the scratch of each slot, a multiple of kAlignment; slot i has those from i times as many on.
inline std::int64_t slot_scratch_bytes(const Invocation& call, std::int64_t reserved = 0) noexcept {
  const std::int64_t slots = std::max<std::int32_t>(call.threads->count, 1);
  const auto alignment = static_cast<std::int64_t>(kAlignment);
  return (call.scratch_bytes - reserved) / slots / alignment * alignment;
}

/// parallel_slots for kernels without scratch: f(begin, end).
template <typename F>
void parallel_ranges(const Threads& threads, std::int64_t total, Grain grain, F&& f) {
  parallel_slots(threads, total, grain, [&f](std::int64_t, std::int64_t begin, std::int64_t end) { f(begin, end); });
}

}  // namespace bantam::ops
