// A sweep over time holds the live buffers ordered by offset. As long as those are disjoint, a buffer that begins can
// only collide with its two neighbours in that order, so every colliding pair shows up at the first step of its later
// buffer, unless an earlier collision was reported already.
#include "plan/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace bantam::plan {
namespace {

tl::unexpected<Error> wrong(std::string message) {
  return fail(StatusCode::kInvalidArgument, "the memory plan is wrong: " + std::move(message));
}

Result<void> check_each_buffer(const Problem& problem, const Solution& solution) {
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& b = problem.buffers[i];
    const std::int64_t offset = solution.offsets[i];
    std::int64_t end = 0;
    if (offset < 0 || b.size < 0 || __builtin_add_overflow(offset, b.size, &end))
      return wrong(fmt::format("{} is at offset {}, which is out of range", describe(b), offset));
    if (b.alignment <= 0 || offset % b.alignment != 0)
      return wrong(fmt::format("{} is at offset {}, expected a multiple of {}", describe(b), offset, b.alignment));
    if (b.fixed && *b.fixed != offset)
      return wrong(fmt::format("{} is at offset {}, but it is fixed at {}", describe(b), offset, *b.fixed));
  }
  return {};
}

Result<void> check_peak(const Problem& problem, const Solution& solution) {
  std::int64_t peak = 0;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i)
    if (problem.buffers[i].size > 0) peak = std::max(peak, solution.offsets[i] + problem.buffers[i].size);
  if (solution.peak != peak)
    return wrong(fmt::format("the stated peak is {} bytes, the buffers end at {}", solution.peak, peak));
  if (problem.capacity && peak > *problem.capacity)
    return fail(StatusCode::kArenaTooSmall,
                fmt::format("the memory plan needs {} bytes, the capacity is {}", peak, *problem.capacity));
  return {};
}

struct Event {
  std::int64_t step;
  bool begins;
  std::size_t buffer;

  /// Ends come before beginnings of the same step: buffers that touch in time may share.
  bool operator<(const Event& other) const {
    if (step != other.step) return step < other.step;
    if (begins != other.begins) return !begins;
    return buffer < other.buffer;
  }
};

std::vector<Event> events_of(const Problem& problem) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& b = problem.buffers[i];
    if (b.size == 0 || b.lower >= b.upper) continue;
    events.push_back({b.lower, true, i});
    events.push_back({b.upper, false, i});
  }
  std::sort(events.begin(), events.end());
  return events;
}

Result<void> check_collisions(const Problem& problem, const Solution& solution) {
  const auto collision = [&](std::size_t a, std::size_t b) {
    return wrong(fmt::format("{} at offset {} and {} at offset {} overlap while both are alive",
                             describe(problem.buffers[a]), solution.offsets[a], describe(problem.buffers[b]),
                             solution.offsets[b]));
  };
  const auto end_of = [&](std::size_t i) { return solution.offsets[i] + problem.buffers[i].size; };

  std::set<std::pair<std::int64_t, std::size_t>> live;  // offset, buffer
  for (const Event& event : events_of(problem)) {
    const std::pair<std::int64_t, std::size_t> entry(solution.offsets[event.buffer], event.buffer);
    if (!event.begins) {
      live.erase(entry);
      continue;
    }
    const auto [place, inserted] = live.insert(entry);
    const auto above = std::next(place);
    if (above != live.end() && above->first < end_of(event.buffer)) return collision(event.buffer, above->second);
    if (place != live.begin()) {
      const auto below = std::prev(place);
      if (end_of(below->second) > entry.first) return collision(below->second, event.buffer);
    }
  }
  return {};
}

}  // namespace

Result<void> verify(const Problem& problem, const Solution& solution) {
  if (solution.offsets.size() != problem.buffers.size())
    return wrong(fmt::format("it has {} offsets for {} buffers", solution.offsets.size(), problem.buffers.size()));
  if (auto each = check_each_buffer(problem, solution); !each) return each;
  if (auto disjoint = check_collisions(problem, solution); !disjoint) return disjoint;
  return check_peak(problem, solution);
}

}  // namespace bantam::plan
