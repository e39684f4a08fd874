// How recurrent layers on packed weights are shared among threads: directions and large batches in parts, each of which
// one thread takes through all steps; or, where there is only one part, the products within a step. Freestanding;
// called by lstm/, gru/ and simple_rnn/ only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/common/parallel.h"
#include "ops/nn/gemm/narrow_panels.h"
#include "ops/nn/lstm/rnn.h"

namespace bantam::ops::rnn {

/// A part at work.
struct PartRun {
  Part part;
  Threads threads;  ///< they share its products
  std::byte* scratch = nullptr;
  std::int64_t scratch_bytes = 0;
  bool alone = true;  ///< all items of its direction, and no other part runs meanwhile
};

/// How the items of all directions, one direction after the other, are cut into parts of about equal size.
struct PartCuts {
  std::int64_t items = 0;
  std::int64_t unit = 1;  ///< parts begin at multiples of it
  std::int64_t count = 1;

  std::int64_t begin(std::int64_t i) const noexcept { return std::min(units() * i / count * unit, items); }

  /// The most items of a part in one direction, whose batch is given.
  std::int64_t most(std::int64_t batch) const noexcept { return std::min((units() + count - 1) / count * unit, batch); }

 private:
  std::int64_t units() const noexcept { return (items + unit - 1) / unit; }
};

/// Cuts for so many threads: between directions, and in batches so large that reading the weights once for each part is
/// no loss. `gates`: rows of weights per hidden unit.
inline PartCuts cut_parts(const Extents& e, std::int64_t gates, std::int64_t threads) noexcept {
  constexpr double kWorthwhile = 200e3;  // multiply-adds
  constexpr std::int64_t kFewestItems = 4;
  const std::int64_t items = e.directions * e.batch;
  const std::int64_t unit =
      std::max<std::int64_t>(threads <= e.directions ? e.batch : std::min(e.batch, kFewestItems), 1);
  const double weights = static_cast<double>(gates * e.hidden) * static_cast<double>(e.input + e.hidden);
  const double work = static_cast<double>(items) * static_cast<double>(e.steps) * weights;
  const std::int64_t most = std::max<std::int64_t>(std::min((items + unit - 1) / unit, threads), 1);
  return {items, unit, static_cast<std::int64_t>(std::clamp(work / kWorthwhile, 1.0, static_cast<double>(most)))};
}

/// The scratch of all parts, of which one needs part_bytes(items, steps at once): with so many steps at once at least,
/// and where it runs fastest. Less work is cut into fewer parts, which together need more where they divide the items
/// less evenly: this is the most of all of them.
template <typename PartBytes>
Footprint footprint_of_parts(const Extents& e, std::int64_t gates, int threads, std::int64_t least_steps,
                             std::int64_t most_steps, PartBytes&& part_bytes) {
  const PartCuts most = cut_parts(e, gates, threads);
  const auto bytes = [&](std::int64_t steps) {
    std::int64_t result = 0;
    for (PartCuts cuts = most; cuts.count > 0; --cuts.count)
      result =
          std::max(result, cuts.count * align_up(part_bytes(cuts.most(e.batch), std::min(e.steps, steps)), kAlignment));
    return result;
  };
  Footprint footprint;
  footprint.scratch_bytes = bytes(least_steps);
  footprint.useful_scratch_bytes = bytes(most_steps);
  return footprint;
}

/// As many steps at once, one or more, as a part's scratch has room for.
template <typename PartBytes>
std::int64_t steps_at_once(const PartRun& run, std::int64_t most, PartBytes&& part_bytes) {
  const std::int64_t none = part_bytes(run.part.items(), 0);
  const std::int64_t step = std::max<std::int64_t>(part_bytes(run.part.items(), 1) - none, 1);
  return std::clamp<std::int64_t>((run.scratch_bytes - none) / step, 1, most);
}

/// Calls run(PartRun) for parts that make up all items of all directions, in parallel where that is worth it. Each has
/// scratch for one step at least, as footprint_of_parts gives.
template <typename PartBytes, typename Run>
void run_parts(const Invocation& call, const Extents& e, std::int64_t gates, PartBytes&& part_bytes, Run&& run) {
  constexpr auto kBytes = static_cast<std::int64_t>(kAlignment);
  PartCuts cuts = cut_parts(e, gates, call.threads->count);
  const auto bytes_each = [&] { return call.scratch_bytes / cuts.count / kBytes * kBytes; };
  // Fewer threads than the plan allowed for have larger parts, and the same memory.
  while (cuts.count > 1 && bytes_each() < part_bytes(cuts.most(e.batch), std::min<std::int64_t>(e.steps, 1)))
    --cuts.count;
  const bool alone = cuts.count == 1;
  const std::int64_t bytes = alone ? call.scratch_bytes : bytes_each();
  parallel_ranges(*call.threads, cuts.count, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      for (std::int64_t item = cuts.begin(i), next = item, end = cuts.begin(i + 1); item < end; item = next) {
        const std::int64_t direction = item / e.batch;
        const std::int64_t origin = direction * e.batch;
        next = std::min(end, origin + e.batch);
        run(PartRun{{direction, item - origin, next - origin},
                    alone ? *call.threads : Threads{},
                    call.scratch + i * bytes,
                    bytes,
                    alone});
      }
  });
}

/// The inputs' share of the gates in steps [first, last), with the bias: `gates` [steps, items of the part, columns].
inline void multiply_inputs(const Invocation& call, const Extents& e, const PartRun& run, std::int64_t first,
                            std::int64_t last, const gemm::NarrowPanels& w, const float* bias, float* gates) {
  const std::int64_t items = run.part.items();
  // Rows of the whole batch are those of one step after the other.
  const std::int64_t at_once = items == e.batch ? last - first : 1;
  for (std::int64_t t = first; t < last; t += at_once)
    gemm::multiply_rows(run.threads, call.input<float>(kX) + (t * e.batch + run.part.first) * e.input, at_once * items,
                        w, gemm::all_panels(w), bias, gates + (t - first) * items * w.n);
}

/// Memory for the inputs' share of the gates of some steps.
struct GateRoom {
  float* data = nullptr;
  std::int64_t steps = 0;
};

/// The larger of `scratch` and what y has for the part's direction when `done` iterations are: the steps that come
/// later hold nothing yet. A second direction has none there, because the results of the first lie between its own; nor
/// has a part beside which others run.
inline GateRoom gate_room(const Invocation& call, const Extents& e, const PartRun& run, bool backward,
                          std::int64_t done, std::int64_t gates, const GateRoom& scratch) noexcept {
  if (!run.alone || run.part.direction != 0) return scratch;
  const std::int64_t steps = (e.steps - done) * e.directions / (gates + e.directions);
  if (steps <= scratch.steps) return scratch;
  const std::int64_t first = backward ? 0 : e.steps * e.directions - steps * gates;
  return {call.output<float>(0) + first * e.state(), steps};
}

}  // namespace bantam::ops::rnn
