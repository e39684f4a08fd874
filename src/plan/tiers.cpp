#include "plan/tiers.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

namespace bantam::plan {
namespace {

using Indices = std::vector<std::size_t>;

/// Bytes alive over the steps, for a set of buffers that shrinks and grows.
class Profile {
 public:
  explicit Profile(const Problem& problem) : problem_(problem) {
    for (const Buffer& b : problem.buffers) {
      times_.push_back(b.lower);
      times_.push_back(b.upper);
    }
    std::ranges::sort(times_);
    times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
    alive_.assign(times_.size(), 0);
  }

  void add(std::size_t buffer, std::int64_t sign) {
    const Buffer& b = problem_.buffers[buffer];
    for (std::size_t i = index(b.lower); times_[i] < b.upper; ++i) alive_[i] += sign * b.size;
  }

  bool fits(std::int64_t capacity) const {
    return std::ranges::all_of(alive_, [&](std::int64_t bytes) { return bytes <= capacity; });
  }

  bool has_room_for(std::size_t buffer, std::int64_t capacity) const {
    const Buffer& b = problem_.buffers[buffer];
    for (std::size_t i = index(b.lower); times_[i] < b.upper; ++i)
      if (alive_[i] + b.size > capacity) return false;
    return true;
  }

  /// Steps of the buffer's life at which more than `capacity` bytes are alive.
  double crowded_steps(std::size_t buffer, std::int64_t capacity) const {
    const Buffer& b = problem_.buffers[buffer];
    double steps = 0;
    for (std::size_t i = index(b.lower); times_[i] < b.upper; ++i)
      if (alive_[i] > capacity) steps += static_cast<double>(times_[i + 1] - times_[i]);
    return steps;
  }

 private:
  std::size_t index(std::int64_t time) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(times_, time) - times_.begin());
  }

  const Problem& problem_;
  std::vector<std::int64_t> times_;  ///< where lives begin and end
  std::vector<std::int64_t> alive_;  ///< from each of them to the next
};

/// Fills one tier with the best of the buffers that are left.
class TierFilling {
 public:
  TierFilling(const Problem& problem, std::span<const std::int64_t> accessed, std::int64_t capacity,
              const TierOptions& options)
      : problem_(problem), accessed_(accessed), capacity_(capacity), options_(options), profile_(problem) {}

  /// The buffers that stay, and where.
  Result<std::pair<Indices, Solution>> run(const Indices& candidates) {
    Indices chosen;
    for (const std::size_t b : candidates) {
      if (problem_.buffers[b].size > capacity_) continue;
      chosen.push_back(b);
      profile_.add(b, 1);
    }
    while (!profile_.fits(capacity_)) evict(chosen, least_worth(chosen));
    auto placed = place(chosen);
    if (!placed) return fail(std::move(placed.error()));
    // The profile fits, the placement does not: what sticks out at the top makes room.
    while (placed->peak > capacity_) {
      evict(chosen, least_worth_above(chosen, *placed));
      placed = place(chosen);
      if (!placed) return fail(std::move(placed.error()));
    }
    return improve(std::move(chosen), std::move(*placed), candidates);
  }

 private:
  double density(std::size_t b) const {
    const Buffer& buffer = problem_.buffers[b];
    return static_cast<double>(accessed_[b]) / std::max<double>(1, static_cast<double>(buffer.size));
  }

  void evict(Indices& chosen, std::size_t position) {
    profile_.add(chosen[position], -1);
    chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(position));
  }

  /// The one whose accesses are fewest for the room that it takes where room is scarce.
  std::size_t least_worth(const Indices& chosen) const {
    std::size_t least = 0;
    double least_value = 0;
    bool found = false;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const double crowded = profile_.crowded_steps(chosen[i], capacity_);
      if (crowded == 0 || problem_.buffers[chosen[i]].size == 0) continue;
      const double value = density(chosen[i]) / crowded;
      if (found && value >= least_value) continue;
      found = true;
      least = i;
      least_value = value;
    }
    return least;
  }

  std::size_t least_worth_above(const Indices& chosen, const Solution& placed) const {
    std::size_t least = 0;
    bool found = false;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (placed.offsets[i] + problem_.buffers[chosen[i]].size <= capacity_) continue;
      if (found && density(chosen[i]) >= density(chosen[least])) continue;
      found = true;
      least = i;
    }
    return least;
  }

  Result<Solution> place(const Indices& chosen) const {
    Problem part;
    for (const std::size_t b : chosen) part.buffers.push_back(problem_.buffers[b]);
    part.capacity = capacity_;
    SolveOptions options;
    options.step_budget = options_.step_budget;
    auto solved = solve(part, options);
    if (!solved) return fail(std::move(solved.error()));
    return std::move(solved->solution);
  }

  /// Buffers that gave way early may find room again, now that others have gone too.
  Result<std::pair<Indices, Solution>> improve(Indices chosen, Solution placed, const Indices& candidates) {
    Indices left;
    for (const std::size_t b : candidates)
      if (std::ranges::find(chosen, b) == chosen.end() && accessed_[b] > 0) left.push_back(b);
    std::ranges::stable_sort(left, std::greater<>(), [&](std::size_t b) { return accessed_[b]; });
    int tries = 0;
    for (const std::size_t b : left) {
      if (tries == options_.improvements) break;
      if (problem_.buffers[b].size > capacity_ || !profile_.has_room_for(b, capacity_)) continue;
      ++tries;
      Indices more = chosen;
      more.push_back(b);
      auto retried = place(more);
      if (!retried) return fail(std::move(retried.error()));
      if (retried->peak > capacity_) continue;
      profile_.add(b, 1);
      chosen = std::move(more);
      placed = std::move(*retried);
    }
    return std::pair(std::move(chosen), std::move(placed));
  }

  const Problem& problem_;
  std::span<const std::int64_t> accessed_;
  std::int64_t capacity_;
  const TierOptions& options_;
  Profile profile_;
};

/// As low as the search gets, since what is not used here is room for others.
Result<Solution> place_rest(const Problem& problem, const Indices& rest, const TierOptions& options) {
  Problem part;
  for (const std::size_t b : rest) part.buffers.push_back(problem.buffers[b]);
  SolveOptions solve_options;
  solve_options.step_budget = options.step_budget;
  auto solved = solve(part, solve_options);
  if (!solved) return fail(std::move(solved.error()));
  return std::move(solved->solution);
}

}  // namespace

Result<TierPlan> plan_tiers(const Problem& problem, std::span<const std::int64_t> accessed, std::span<const Tier> tiers,
                            const TierOptions& options) {
  if (auto valid = validate(problem); !valid) return fail(std::move(valid.error()));
  for (const Buffer& b : problem.buffers)
    if (b.fixed) return fail(StatusCode::kInvalidArgument, describe(b) + " has a fixed place, which memories exclude");
  TierPlan plan;
  plan.tiers.assign(problem.buffers.size(), 0);
  plan.offsets.assign(problem.buffers.size(), 0);
  plan.peaks.assign(tiers.size(), 0);
  Indices rest(problem.buffers.size());
  std::iota(rest.begin(), rest.end(), std::size_t{0});
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    // Most of the time all that is left fits, and the last tier takes it in any case.
    auto all = place_rest(problem, rest, options);
    if (!all) return fail(std::move(all.error()));
    std::pair<Indices, Solution> filled{rest, std::move(*all)};
    if (filled.second.peak > tiers[t].capacity && t + 1 < tiers.size()) {
      auto some = TierFilling(problem, accessed, tiers[t].capacity, options).run(rest);
      if (!some) return fail(std::move(some.error()));
      filled = std::move(*some);
    }
    plan.peaks[t] = filled.second.peak;
    for (std::size_t i = 0; i < filled.first.size(); ++i) {
      plan.tiers[filled.first[i]] = static_cast<std::uint32_t>(t);
      plan.offsets[filled.first[i]] = filled.second.offsets[i];
      plan.cost += tiers[t].cost * static_cast<double>(accessed[filled.first[i]]);
    }
    Indices next;
    std::ranges::sort(filled.first);
    std::ranges::set_difference(rest, filled.first, std::back_inserter(next));
    rest = std::move(next);
  }
  plan.fits = plan.peaks.back() <= tiers.back().capacity;
  return plan;
}

}  // namespace bantam::plan
