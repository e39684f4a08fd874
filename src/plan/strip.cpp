// Why units lose nothing: a solution can be pushed down until every free block lies on the bottom or on another block,
// so that all offsets are sums of rounded sizes, aligned up; a common divisor of sizes, alignments (where they matter)
// and fixed offsets divides them all.
//
// Why a buffer that spans a strip may be settled at the bottom: nothing else of the strip shares its bytes at any step,
// so it separates the strip into a lower and an upper part, and the lower part can be lifted by its size. That keeps
// alignments when all are equal and divide the size.
#include "plan/strip.h"

#include <algorithm>
#include <numeric>

#include "base/shape.h"
#include "plan/bounds.h"

namespace bantam::plan {
namespace {

using Indices = std::vector<std::int32_t>;

const Buffer& at(const Problem& problem, std::int32_t index) {
  return problem.buffers[static_cast<std::size_t>(index)];
}

/// Groups of buffers that are connected through time.
std::vector<Indices> connected_groups(const Problem& problem, Indices members) {
  std::sort(members.begin(), members.end(), [&](std::int32_t a, std::int32_t b) {
    return std::pair(at(problem, a).lower, a) < std::pair(at(problem, b).lower, b);
  });
  std::vector<Indices> groups;
  std::int64_t reach = -1;
  for (const std::int32_t i : members) {
    if (at(problem, i).lower >= reach) groups.emplace_back();
    groups.back().push_back(i);
    reach = std::max(reach, at(problem, i).upper);
  }
  return groups;
}

/// Moves the buffers that may be settled below all others of the group out of it and returns them.
Indices take_floor_buffers(const Problem& problem, Indices& group) {
  const std::int64_t alignment = at(problem, group[0]).alignment;
  std::int64_t last_begin = 0;
  std::int64_t first_end = kMaxStep;
  for (const std::int32_t i : group) {
    const Buffer& b = at(problem, i);
    if (b.fixed || b.alignment != alignment) return {};
    last_begin = std::max(last_begin, b.lower);
    first_end = std::min(first_end, b.upper);
  }
  const auto middle = std::stable_partition(group.begin(), group.end(), [&](std::int32_t i) {
    const Buffer& b = at(problem, i);
    return b.size % alignment != 0 || b.lower >= first_end || b.upper <= last_begin;
  });
  Indices taken(middle, group.end());
  group.erase(middle, group.end());
  return taken;
}

/// Steps at which the sections of a strip begin: of each run of steps in which buffers only begin, the last one, for
/// it holds the largest set of live buffers. Everything else is alive only together with subsets of these sets.
std::vector<std::int64_t> section_steps(const Problem& problem, const Indices& group) {
  std::vector<std::pair<std::int64_t, bool>> events;  // step, begins
  for (const std::int32_t i : group) {
    events.emplace_back(at(problem, i).lower, true);
    events.emplace_back(at(problem, i).upper, false);
  }
  std::sort(events.begin(), events.end());  // ends come before beginnings of the same step
  std::vector<std::int64_t> steps;
  for (std::size_t e = 0; e + 1 < events.size(); ++e)
    if (events[e].second && !events[e + 1].second) steps.push_back(events[e].first);
  return steps;
}

std::int64_t common_unit(const Problem& problem, const Indices& group, std::int64_t smallest_alignment) {
  std::int64_t unit = 0;
  for (const std::int32_t i : group) {
    unit = std::gcd(unit, align_up(at(problem, i).size, smallest_alignment));
    unit = std::gcd(unit, at(problem, i).fixed.value_or(0));
  }
  // An alignment that divides the unit is kept by itself; of the others the power of two in the unit remains, which
  // every smaller alignment still divides.
  for (const std::int32_t i : group)
    if (unit % at(problem, i).alignment != 0) unit = std::gcd(unit, at(problem, i).alignment);
  return unit;
}

Strip make_strip(const Problem& problem, Indices group, std::int64_t base) {
  Strip strip;
  strip.base = base;
  const auto steps = section_steps(problem, group);
  strip.sections = static_cast<std::int32_t>(steps.size());
  strip.alignment = kMaxAlignment;
  Problem part;
  for (const std::int32_t i : group) {
    strip.alignment = std::min(strip.alignment, at(problem, i).alignment);
    part.buffers.push_back(at(problem, i));
  }
  strip.bound = base + lower_bound(part).bytes;
  strip.unit = common_unit(problem, group, strip.alignment);
  const auto section_at = [&](std::int64_t step) {
    return static_cast<std::int32_t>(std::lower_bound(steps.begin(), steps.end(), step) - steps.begin());
  };
  for (const std::int32_t i : group) {
    const Buffer& b = at(problem, i);
    strip.exact = strip.exact && b.size % strip.alignment == 0;
    strip.blocks.push_back({.begin = section_at(b.lower),
                            .end = section_at(b.upper),
                            .size = align_up(b.size, strip.alignment) / strip.unit,
                            .bytes = b.size,
                            .alignment = std::max<std::int64_t>(1, b.alignment / strip.unit),
                            .fixed = b.fixed ? *b.fixed / strip.unit : -1});
  }
  strip.buffers = std::move(group);
  return strip;
}

}  // namespace

Decomposition decompose(const Problem& problem) {
  Decomposition result;
  result.settled.assign(problem.buffers.size(), 0);
  Indices members;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& b = problem.buffers[i];
    if (b.size > 0) members.push_back(static_cast<std::int32_t>(i));
    if (b.size == 0) result.settled[i] = b.fixed.value_or(0);
  }

  struct Part {
    Indices members;
    std::int64_t base;
  };
  std::vector<Part> waiting = {{std::move(members), 0}};
  while (!waiting.empty()) {
    const Part part = std::move(waiting.back());
    waiting.pop_back();
    for (Indices& group : connected_groups(problem, part.members)) {
      const Indices floor = take_floor_buffers(problem, group);
      std::int64_t top = part.base;
      for (const std::int32_t i : floor) {
        result.settled[static_cast<std::size_t>(i)] = top;
        top += at(problem, i).size;
      }
      if (group.empty()) continue;
      if (floor.empty())
        result.strips.push_back(make_strip(problem, std::move(group), part.base));
      else
        waiting.push_back({std::move(group), top});
    }
  }
  return result;
}

}  // namespace bantam::plan
