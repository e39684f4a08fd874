#include "plan/place.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <queue>

#include "base/shape.h"
#include "plan/bounds.h"
#include "plan/range_max.h"

namespace bantam::plan {
namespace {

/// Elementary steps after which place_best starts no further planner; about a second.
constexpr std::int64_t kWorkLimit = 500'000'000;

/// The buffers placed so far, ascending by offset, and the search for gaps between them.
class Arena {
 public:
  explicit Arena(std::size_t buffers) { placed_.reserve(buffers); }

  void insert(const Buffer& b, std::int64_t offset) {
    if (b.size == 0) return;
    const Block block{offset, offset + b.size, b.lower, b.upper};
    const auto by_offset = [](const Block& x, const Block& y) { return x.begin < y.begin; };
    placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), block, by_offset), block);
  }

  std::int64_t find_gap(const Buffer& b, Fit fit) {
    std::int64_t top = 0;  // end of the highest block below that is alive together with b
    std::int64_t best_offset = -1;
    std::int64_t best_gap = std::numeric_limits<std::int64_t>::max();
    std::size_t scanned = 0;
    for (const Block& block : placed_) {
      ++scanned;
      if (block.lower >= b.upper || block.upper <= b.lower) continue;
      const std::int64_t offset = align_up(top, b.alignment);
      const std::int64_t gap = block.begin - offset;
      if (gap >= b.size && gap < best_gap) {
        best_gap = gap;
        best_offset = offset;
        if (fit == Fit::kFirst || gap == b.size) break;
      }
      top = std::max(top, block.end);
    }
    work_ += static_cast<std::int64_t>(scanned) + 1;
    return best_offset >= 0 ? best_offset : align_up(top, b.alignment);
  }

  std::int64_t work() const { return work_; }

 private:
  struct Block {
    std::int64_t begin, end;    // bytes
    std::int64_t lower, upper;  // steps
  };
  std::vector<Block> placed_;
  std::int64_t work_ = 0;
};

/// A solution and the elementary steps it took.
struct Attempt {
  Solution solution;
  std::int64_t work = 0;
};

std::int64_t peak_of(const Problem& problem, const std::vector<std::int64_t>& offsets) {
  std::int64_t peak = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i)
    if (problem.buffers[i].size > 0) peak = std::max(peak, offsets[i] + problem.buffers[i].size);
  return peak;
}

Attempt attempt_in_order(const Problem& problem, std::span<const std::int32_t> order, Fit fit,
                         std::string_view method) {
  const auto& buffers = problem.buffers;
  Arena arena(buffers.size());
  std::vector<std::int64_t> offsets(buffers.size(), 0);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].fixed) continue;
    offsets[i] = *buffers[i].fixed;
    arena.insert(buffers[i], offsets[i]);
  }
  for (const std::int32_t next : order) {
    const auto i = static_cast<std::size_t>(next);
    if (buffers[i].fixed || buffers[i].size == 0) continue;
    offsets[i] = arena.find_gap(buffers[i], fit);
    arena.insert(buffers[i], offsets[i]);
  }
  const std::int64_t peak = peak_of(problem, offsets);
  return {{std::move(offsets), peak, std::string(method)}, arena.work()};
}

/// Bytes of all buffers whose lifetime meets that of each buffer (itself included).
std::vector<std::int64_t> conflict_bytes(const Problem& problem) {
  // What meets [lower, upper) is everything that began before upper, less what had ended by lower.
  using Change = std::pair<std::int64_t, std::int64_t>;  // step, bytes that began or ended up to and including it
  std::vector<Change> begun;
  std::vector<Change> ended;
  for (const Buffer& b : problem.buffers) {
    begun.emplace_back(b.lower, b.size);
    ended.emplace_back(b.upper, b.size);
  }
  for (auto* changes : {&begun, &ended}) {
    std::sort(changes->begin(), changes->end());
    for (std::size_t i = 1; i < changes->size(); ++i) (*changes)[i].second += (*changes)[i - 1].second;
  }
  const auto sum_before = [](const std::vector<Change>& changes, std::int64_t step) {
    const auto end = std::lower_bound(changes.begin(), changes.end(), Change(step, -1));
    return end == changes.begin() ? 0 : std::prev(end)->second;
  };
  std::vector<std::int64_t> bytes;
  for (const Buffer& b : problem.buffers) bytes.push_back(sum_before(begun, b.upper) - sum_before(ended, b.lower + 1));
  return bytes;
}

/// Sections of time that each buffer covers: indices into event_times.
struct Sections {
  explicit Sections(const Problem& problem) : times(event_times(problem)) {
    const auto index = [&](std::int64_t time) {
      return static_cast<std::size_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
    };
    for (const Buffer& b : problem.buffers) {
      begin.push_back(index(b.lower));
      end.push_back(index(b.upper));
    }
  }
  std::size_t count() const { return times.empty() ? 0 : times.size() - 1; }

  std::vector<std::int64_t> times;
  std::vector<std::size_t> begin;
  std::vector<std::size_t> end;
};

/// Most bytes needed at any step of each buffer.
std::vector<std::int64_t> breadth_bytes(const Problem& problem) {
  const Sections sections(problem);
  const auto bounds = section_bounds(problem, sections.times);
  RangeMax row(sections.count());
  for (std::size_t s = 0; s < bounds.size(); ++s) row.raise(s, s + 1, bounds[s]);
  std::vector<std::int64_t> bytes;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) bytes.push_back(row.max(sections.begin[i], sections.end[i]));
  return bytes;
}

double lifetime(const Buffer& b) { return static_cast<double>(b.upper - b.lower); }
double area(const Buffer& b) { return static_cast<double>(b.size) * lifetime(b); }

/// Descending keys of each buffer under an order.
std::vector<std::pair<double, double>> keys_of(const Problem& problem, GreedyOrder order) {
  std::vector<std::int64_t> context;
  if (order == GreedyOrder::kConflict) context = conflict_bytes(problem);
  if (order == GreedyOrder::kBreadth || order == GreedyOrder::kTightArea) context = breadth_bytes(problem);
  std::vector<std::pair<double, double>> keys;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& b = problem.buffers[i];
    const auto bytes = static_cast<double>(b.size);
    const double around = context.empty() ? 0.0 : static_cast<double>(context[i]);
    switch (order) {
      case GreedyOrder::kSize: keys.emplace_back(bytes, lifetime(b)); break;
      case GreedyOrder::kArea: keys.emplace_back(area(b), bytes); break;
      case GreedyOrder::kLifetime: keys.emplace_back(lifetime(b), bytes); break;
      case GreedyOrder::kStart: keys.emplace_back(-static_cast<double>(b.lower), bytes); break;
      case GreedyOrder::kConflict:
      case GreedyOrder::kBreadth: keys.emplace_back(around, bytes); break;
      case GreedyOrder::kTightArea: keys.emplace_back(around, area(b)); break;
    }
  }
  return keys;
}

std::vector<std::int32_t> sorted_order(const Problem& problem, GreedyOrder order) {
  const auto keys = keys_of(problem, order);
  std::vector<std::int32_t> indices(problem.buffers.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::stable_sort(indices.begin(), indices.end(), [&](std::int32_t a, std::int32_t b) {
    return keys[static_cast<std::size_t>(a)] > keys[static_cast<std::size_t>(b)];
  });
  return indices;
}

/// Lowest offset >= `offset` at which b meets no fixed buffer. `fixed` ascends by offset.
std::int64_t above_fixed(const Buffer& b, std::int64_t offset, const std::vector<const Buffer*>& fixed) {
  for (const Buffer* f : fixed) {
    if (f->lower >= b.upper || f->upper <= b.lower || *f->fixed + f->size <= offset) continue;
    if (*f->fixed >= offset + b.size) continue;
    offset = align_up(*f->fixed + f->size, b.alignment);
  }
  return offset;
}

Attempt attempt_skyline(const Problem& problem) {
  const auto& buffers = problem.buffers;
  const Sections sections(problem);
  RangeMax tops(sections.count());
  std::vector<std::int64_t> offsets(buffers.size(), 0);
  std::vector<const Buffer*> fixed;
  // Waiting buffers by the lowest offset known to be possible; tops only grow, so an entry may be too low, never high.
  struct Entry {
    std::int64_t offset;
    double area;
    std::size_t buffer;
    bool operator<(const Entry& o) const {  // the top of the heap is the lowest offset, then the largest area
      if (offset != o.offset) return offset > o.offset;
      if (area != o.area) return area < o.area;
      return buffer > o.buffer;
    }
  };
  std::priority_queue<Entry> waiting;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    if (b.fixed) offsets[i] = *b.fixed;
    if (b.size == 0) continue;
    if (b.fixed)
      fixed.push_back(&b);
    else
      waiting.push({0, area(b), i});
  }
  std::sort(fixed.begin(), fixed.end(), [](const Buffer* a, const Buffer* b) { return *a->fixed < *b->fixed; });

  std::int64_t work = 0;
  while (!waiting.empty()) {
    const Entry entry = waiting.top();
    waiting.pop();
    work += 20 + static_cast<std::int64_t>(fixed.size());
    const Buffer& b = buffers[entry.buffer];
    const std::size_t begin = sections.begin[entry.buffer];
    const std::size_t end = sections.end[entry.buffer];
    const std::int64_t offset = above_fixed(b, align_up(tops.max(begin, end), b.alignment), fixed);
    if (offset > entry.offset) {
      waiting.push({offset, entry.area, entry.buffer});
      continue;
    }
    offsets[entry.buffer] = offset;
    tops.raise(begin, end, offset + b.size);
  }
  const std::int64_t peak = peak_of(problem, offsets);
  return {{std::move(offsets), peak, "greedy: skyline"}, work};
}

struct Greedy {
  GreedyOrder order;
  Fit fit;
  std::string_view method;
};

/// What place_best runs before the skyline, the usual winners first.
constexpr std::array kGreedies = {
    Greedy{GreedyOrder::kSize, Fit::kFirst, "greedy: size, first fit"},
    Greedy{GreedyOrder::kBreadth, Fit::kFirst, "greedy: breadth, first fit"},
    Greedy{GreedyOrder::kTightArea, Fit::kFirst, "greedy: breadth and area, first fit"},
    Greedy{GreedyOrder::kArea, Fit::kFirst, "greedy: area, first fit"},
    Greedy{GreedyOrder::kLifetime, Fit::kFirst, "greedy: lifetime, first fit"},
    Greedy{GreedyOrder::kConflict, Fit::kFirst, "greedy: conflicts, first fit"},
    Greedy{GreedyOrder::kStart, Fit::kFirst, "greedy: start, first fit"},
    Greedy{GreedyOrder::kSize, Fit::kBest, "greedy: size, best fit"},
    Greedy{GreedyOrder::kBreadth, Fit::kBest, "greedy: breadth, best fit"},
    Greedy{GreedyOrder::kTightArea, Fit::kBest, "greedy: breadth and area, best fit"},
    Greedy{GreedyOrder::kArea, Fit::kBest, "greedy: area, best fit"},
    Greedy{GreedyOrder::kLifetime, Fit::kBest, "greedy: lifetime, best fit"},
    Greedy{GreedyOrder::kConflict, Fit::kBest, "greedy: conflicts, best fit"},
    Greedy{GreedyOrder::kStart, Fit::kBest, "greedy: start, best fit"},
};

std::string_view method_of(GreedyOrder order, Fit fit) {
  const auto* const known = std::find_if(kGreedies.begin(), kGreedies.end(),
                                         [&](const Greedy& g) { return g.order == order && g.fit == fit; });
  return known == kGreedies.end() ? "greedy" : known->method;
}

}  // namespace

Solution place_greedy(const Problem& problem, GreedyOrder order, Fit fit) {
  return attempt_in_order(problem, sorted_order(problem, order), fit, method_of(order, fit)).solution;
}

Solution place_skyline(const Problem& problem) { return attempt_skyline(problem).solution; }

Solution place_in_order(const Problem& problem, std::span<const std::int32_t> order, Fit fit, std::string_view method) {
  return attempt_in_order(problem, order, fit, method).solution;
}

Solution place_best(const Problem& problem, std::int64_t good_enough) {
  Attempt best =
      attempt_in_order(problem, sorted_order(problem, kGreedies[0].order), kGreedies[0].fit, kGreedies[0].method);
  std::int64_t work = best.work;
  const auto done = [&] { return best.solution.peak <= good_enough || work > kWorkLimit; };
  const auto consider = [&](Attempt attempt) {
    work += attempt.work;
    if (attempt.solution.peak < best.solution.peak) best = std::move(attempt);
  };
  for (std::size_t i = 1; i < kGreedies.size() && !done(); ++i)
    consider(
        attempt_in_order(problem, sorted_order(problem, kGreedies[i].order), kGreedies[i].fit, kGreedies[i].method));
  if (!done()) consider(attempt_skyline(problem));
  return std::move(best.solution);
}

}  // namespace bantam::plan
