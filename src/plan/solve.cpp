#include "plan/solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "plan/place.h"
#include "plan/strip.h"
#include "plan/strip_search.h"
#include "plan/verify.h"

namespace bantam::plan {
namespace {

/// Strips whose search tables would be larger than this many words (about 200 MB) are placed greedily only.
constexpr std::int64_t kMaxTableWords = std::int64_t{1} << 25;

/// Elementary steps below which another attempt is not worth its start.
constexpr std::int64_t kSmallestBudget = 2'000'000;

/// Elementary steps between two reports of progress.
constexpr std::int64_t kStepsBetweenReports = 50'000'000;

Result<void> check_fixed(const Problem& problem) {
  Problem fixed;
  Solution solution;
  for (const Buffer& b : problem.buffers) {
    if (!b.fixed) continue;
    fixed.buffers.push_back(b);
    solution.offsets.push_back(*b.fixed);
    if (b.size > 0) solution.peak = std::max(solution.peak, *b.fixed + b.size);
  }
  auto verified = verify(fixed, solution);
  if (!verified) return fail(std::move(verified.error()).in("the fixed offsets contradict each other"));
  return {};
}

/// One strip with the best placement so far.
struct Part {
  Strip strip;
  std::vector<std::int64_t> offsets;  ///< per block, bytes
  std::int64_t peak = 0;              ///< bytes
  std::string method;
  std::int64_t bound = 0;   ///< proven, bytes
  std::int64_t failed = 0;  ///< largest target searched for in vain, proven impossible or not
};

class Solver {
 public:
  Solver(const Problem& problem, const SolveOptions& options, SolveResult& result)
      : problem_(problem), options_(options), result_(result) {}

  void run() {
    result_.lower_bound = lower_bound(problem_);
    result_.proven_bound = result_.lower_bound.bytes;
    goal_ = std::max(result_.lower_bound.bytes, problem_.capacity.value_or(0));
    Decomposition parts = decompose(problem_);
    result_.solution.offsets = std::move(parts.settled);
    for (Strip& strip : parts.strips) parts_.push_back(place(std::move(strip)));
    // The part that is furthest from its goal decides how good the others need to be.
    std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.peak > b.peak; });
    for (Part& part : parts_) {
      if (part.peak > goal_ && options_.step_budget > 0) improve(part);
      goal_ = std::max(goal_, part.peak);
    }
    collect();
  }

 private:
  Part place(Strip strip) const {
    Problem subproblem;
    for (const std::int32_t i : strip.buffers)
      subproblem.buffers.push_back(problem_.buffers[static_cast<std::size_t>(i)]);
    Solution solution = place_best(subproblem, goal_ - strip.base);
    Part part;
    for (const std::int64_t offset : solution.offsets) part.offsets.push_back(strip.base + offset);
    part.peak = strip.base + solution.peak;
    part.method = std::move(solution.method);
    part.bound = strip.bound;
    part.strip = std::move(strip);
    return part;
  }

  /// Searches for the goal; should that fail, for ever smaller improvements between what failed and what is known; then
  /// all over again with what is left of the budget.
  void improve(Part& part) {
    if (TreeSearch::words_needed(part.strip) > kMaxTableWords) return;
    StripSearch search(part.strip, options_.seed);
    const std::int64_t quantum = part.strip.exact ? part.strip.unit : 1;
    std::int64_t target = goal_;
    // A capacity is what the caller wants to know about; without one, any improvement is welcome.
    double share = problem_.capacity ? 0.8 : 0.5;
    while (target < part.peak && steps_left() >= kSmallestBudget && !is_late()) {
      attempt(part, search, target, share);
      const std::int64_t lowest = std::max(goal_, part.bound);
      if (part.peak <= lowest) break;
      const std::int64_t failed = std::max(part.failed, lowest - quantum);
      const std::int64_t gap = (part.peak - failed) / quantum;
      target = gap > 1 ? failed + gap / 2 * quantum : lowest;
      if (gap <= 1) part.failed = 0;
      share = 0.25;
    }
  }

  /// One target, with a share of the steps and of the time left.
  void attempt(Part& part, StripSearch& search, std::int64_t target, double share) {
    const auto pulse = [&](std::int64_t steps) {
      result_.steps += steps;
      report(part, target);
    };
    const auto steps = std::max(static_cast<std::int64_t>(share * static_cast<double>(steps_left())), kSmallestBudget);
    switch (search.run(target, std::min(steps, steps_left()), partial_deadline(share), pulse)) {
      case TreeSearch::Outcome::kFound:
        part.offsets = search.offsets();
        part.peak = 0;
        for (std::size_t i = 0; i < part.offsets.size(); ++i)
          part.peak = std::max(part.peak, part.offsets[i] + part.strip.blocks[i].bytes);
        part.method = "search";
        break;
      case TreeSearch::Outcome::kImpossible:
        part.bound = next_peak(part.strip, target);
        part.failed = target;
        break;
      case TreeSearch::Outcome::kLimit: part.failed = target; break;
    }
  }

  /// The smallest peak above `bytes` that a placement of the strip can have.
  static std::int64_t next_peak(const Strip& strip, std::int64_t bytes) {
    if (!strip.exact) return bytes + 1;
    return strip.base + ((bytes - strip.base) / strip.unit + 1) * strip.unit;
  }

  void report(const Part& part, std::int64_t target) {
    if (!options_.progress || result_.steps < next_report_) return;
    next_report_ = result_.steps + kStepsBetweenReports;
    options_.progress({.peak = part.peak,
                       .bound = std::max(part.bound, result_.proven_bound),
                       .target = target,
                       .steps = result_.steps,
                       .step_budget = options_.step_budget});
  }

  void collect() {
    Solution& solution = result_.solution;
    const Part* decisive = nullptr;
    for (const Part& part : parts_) {
      result_.proven_bound = std::max(result_.proven_bound, part.bound);
      if (decisive == nullptr || part.peak > decisive->peak) decisive = &part;
      for (std::size_t i = 0; i < part.offsets.size(); ++i)
        solution.offsets[static_cast<std::size_t>(part.strip.buffers[i])] = part.offsets[i];
    }
    for (std::size_t i = 0; i < solution.offsets.size(); ++i)
      if (problem_.buffers[i].size > 0)
        solution.peak = std::max(solution.peak, solution.offsets[i] + problem_.buffers[i].size);
    solution.method = decisive == nullptr ? "stacked" : decisive->method;
  }

  Deadline partial_deadline(double share) const {
    if (!options_.deadline) return std::nullopt;
    const auto now = std::chrono::steady_clock::now();
    const auto left = std::chrono::duration<double>(*options_.deadline - now) * share;
    return now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(left);
  }

  std::int64_t steps_left() const { return std::max<std::int64_t>(options_.step_budget - result_.steps, 0); }

  bool is_late() const { return options_.deadline && std::chrono::steady_clock::now() >= *options_.deadline; }

  const Problem& problem_;
  const SolveOptions& options_;
  SolveResult& result_;
  std::vector<Part> parts_;
  std::int64_t goal_ = 0;  ///< a part needs no smaller peak, bytes
  std::int64_t next_report_ = 0;
};

}  // namespace

Result<SolveResult> solve(const Problem& problem, const SolveOptions& options) {
  if (auto valid = validate(problem); !valid) return fail(std::move(valid.error()));
  if (auto fixed = check_fixed(problem); !fixed) return fail(std::move(fixed.error()));
  SolveResult result;
  Solver(problem, options, result).run();
  Problem unlimited = problem;
  unlimited.capacity.reset();
  if (auto verified = verify(unlimited, result.solution); !verified)
    return fail(std::move(verified.error()).in("internal error of the planner"));
  return result;
}

}  // namespace bantam::plan
