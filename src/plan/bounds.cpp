// The bound of a section, for any alignment class a: of the buffers alive with alignment >= a, all offsets are
// multiples of a, so each but the topmost occupies its size rounded up to a. Hence the peak is at least the sum of the
// rounded sizes less the largest single rounding. The best class counts. A fixed buffer also bounds the peak by its
// end.
#include "plan/bounds.h"

#include <algorithm>
#include <queue>

#include "base/shape.h"

namespace bantam::plan {
namespace {

std::size_t section_of(const std::vector<std::int64_t>& times, std::int64_t time) {
  return static_cast<std::size_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
}

/// Buffers of one alignment class, in order of their first section.
std::vector<const Buffer*> class_members(const Problem& problem, std::int64_t alignment) {
  std::vector<const Buffer*> members;
  for (const Buffer& b : problem.buffers)
    if (b.alignment >= alignment && b.size > 0) members.push_back(&b);
  std::sort(members.begin(), members.end(), [](const Buffer* a, const Buffer* b) { return a->lower < b->lower; });
  return members;
}

/// Raises bounds[s] to what the class of `alignment` needs in section s.
void raise_by_class(const Problem& problem, const std::vector<std::int64_t>& times, std::int64_t alignment,
                    std::vector<std::int64_t>& bounds) {
  const auto members = class_members(problem, alignment);
  std::vector<std::int64_t> change(times.size(), 0);
  for (const Buffer* b : members) {
    const std::int64_t rounded = align_up(b->size, alignment);
    change[section_of(times, b->lower)] += rounded;
    change[section_of(times, b->upper)] -= rounded;
  }
  // Largest rounding alive: a heap whose top is dropped once its buffer has ended.
  using Rounding = std::pair<std::int64_t, std::int64_t>;  // bytes, upper
  std::priority_queue<Rounding> roundings;
  std::size_t next = 0;
  std::int64_t alive = 0;
  for (std::size_t s = 0; s + 1 < times.size(); ++s) {
    alive += change[s];
    for (; next < members.size() && members[next]->lower == times[s]; ++next)
      roundings.emplace(align_up(members[next]->size, alignment) - members[next]->size, members[next]->upper);
    while (!roundings.empty() && roundings.top().second <= times[s]) roundings.pop();
    if (!roundings.empty()) bounds[s] = std::max(bounds[s], alive - roundings.top().first);
  }
}

void raise_by_fixed(const Problem& problem, const std::vector<std::int64_t>& times, std::vector<std::int64_t>& bounds) {
  // A fixed buffer's end counts wherever it is alive; the highest end wins, so visiting ends in descending order and
  // skipping sections that are done keeps this linear in the sections.
  std::vector<const Buffer*> fixed;
  for (const Buffer& b : problem.buffers)
    if (b.fixed && b.size > 0) fixed.push_back(&b);
  std::sort(fixed.begin(), fixed.end(),
            [](const Buffer* a, const Buffer* b) { return *a->fixed + a->size > *b->fixed + b->size; });
  std::vector<std::size_t> next_open(times.size() + 1);
  for (std::size_t s = 0; s < next_open.size(); ++s) next_open[s] = s;
  const auto find_open = [&](std::size_t s) {
    while (next_open[s] != s) s = next_open[s] = next_open[next_open[s]];
    return s;
  };
  for (const Buffer* b : fixed) {
    const std::size_t end = section_of(times, b->upper);
    for (std::size_t s = find_open(section_of(times, b->lower)); s < end; s = find_open(s)) {
      bounds[s] = std::max(bounds[s], *b->fixed + b->size);
      next_open[s] = s + 1;
    }
  }
}

}  // namespace

std::vector<std::int64_t> event_times(const Problem& problem) {
  std::vector<std::int64_t> times;
  times.reserve(2 * problem.buffers.size());
  for (const Buffer& b : problem.buffers) {
    times.push_back(b.lower);
    times.push_back(b.upper);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

std::vector<std::int64_t> section_bounds(const Problem& problem, const std::vector<std::int64_t>& times) {
  if (times.empty()) return {};
  std::vector<std::int64_t> bounds(times.size() - 1, 0);
  std::vector<std::int64_t> alignments;
  for (const Buffer& b : problem.buffers) alignments.push_back(b.alignment);
  std::sort(alignments.begin(), alignments.end());
  alignments.erase(std::unique(alignments.begin(), alignments.end()), alignments.end());
  for (const std::int64_t alignment : alignments) raise_by_class(problem, times, alignment, bounds);
  raise_by_fixed(problem, times, bounds);
  return bounds;
}

LowerBound lower_bound(const Problem& problem) {
  const auto times = event_times(problem);
  const auto bounds = section_bounds(problem, times);
  LowerBound result;
  if (bounds.empty()) return result;
  result.bytes = *std::max_element(bounds.begin(), bounds.end());
  if (result.bytes == 0) return result;
  for (std::size_t s = 0; s < bounds.size(); ++s) {
    if (bounds[s] != result.bytes) continue;
    if (!result.peaks.empty() && result.peaks.back().upper == times[s])
      result.peaks.back().upper = times[s + 1];
    else
      result.peaks.push_back({times[s], times[s + 1]});
  }
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& b = problem.buffers[i];
    if (b.size > 0 && b.lower <= result.peaks[0].lower && b.upper > result.peaks[0].lower)
      result.peak_buffers.push_back(static_cast<std::int32_t>(i));
  }
  return result;
}

}  // namespace bantam::plan
