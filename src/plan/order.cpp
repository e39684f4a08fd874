// Why a step may be taken at once when it fits below the peak reached and leaves no more alive than before: in any
// order that takes it later, moving it forward only lowers what is alive in between. It frees at least as much when
// taken later, so what was alive with it waiting is never less than what is alive with it done; and its own peak was
// paid for.
#include "plan/order.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <unordered_map>
#include <utility>

#include "plan/index.h"

namespace bantam::plan {
namespace {

constexpr std::size_t kBeamWidth = 24;

using Words = std::vector<std::uint64_t>;

bool has(const Words& set, std::size_t i) { return ((set[i / 64] >> (i % 64)) & 1U) != 0; }
void add(Words& set, std::size_t i) { set[i / 64] |= std::uint64_t{1} << (i % 64); }

std::vector<std::int32_t> distinct(std::vector<std::int32_t> items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  return items;
}

/// No more than either buffer has, so that a buffer of no bytes saves nothing.
std::int64_t saved_by(const OrderProblem& problem, const OrderStep::Overwrite& o) {
  const std::int64_t smaller = std::min(problem.buffers[u(o.written)].bytes, problem.buffers[u(o.read)].bytes);
  return o.saves < 0 ? smaller : std::min(o.saves, smaller);
}

/// What running a step means at some point.
struct Cost {
  std::int64_t during = 0;  ///< alive while it runs
  std::int64_t after = 0;
};

/// The problem with everything counted once, and followers beside predecessors.
class Steps {
 public:
  explicit Steps(const OrderProblem& problem) : problem_(problem) {
    const std::size_t count = problem.steps.size();
    followers.resize(count);
    before.resize(count);
    touches.resize(count);
    for (std::size_t s = 0; s < count; ++s) {
      before[s] = distinct(problem.steps[s].after);
      for (const std::int32_t p : before[s]) followers[u(p)].push_back(static_cast<std::int32_t>(s));
      std::vector<std::int32_t> all = problem.steps[s].reads;
      all.insert(all.end(), problem.steps[s].writes.begin(), problem.steps[s].writes.end());
      touches[s] = distinct(std::move(all));
      work_ += static_cast<std::int64_t>(before[s].size() + touches[s].size() + 2);
    }
  }

  std::size_t count() const { return before.size(); }
  std::size_t words() const { return (count() + 63) / 64; }
  std::int64_t work() const { return work_; }  ///< elementary steps of a walk over everything
  const OrderProblem& problem() const { return problem_; }

  std::vector<std::vector<std::int32_t>> followers;
  std::vector<std::vector<std::int32_t>> before;
  std::vector<std::vector<std::int32_t>> touches;  ///< buffers read or written

 private:
  const OrderProblem& problem_;
  std::int64_t work_ = 0;
};

/// A point in an order: what has run, and what is alive.
struct Point {
  explicit Point(const Steps& steps)
      : done(steps.words(), 0), missing(steps.count()), waiting(steps.problem().buffers.size()) {
    const OrderProblem& problem = steps.problem();
    started.resize(problem.buffers.size());
    for (std::size_t s = 0; s < steps.count(); ++s) {
      missing[s] = static_cast<std::int32_t>(steps.before[s].size());
      for (const std::int32_t b : steps.touches[s]) ++waiting[u(b)];
      if (missing[s] == 0) ready.push_back(static_cast<std::int32_t>(s));
    }
    for (std::size_t b = 0; b < started.size(); ++b) {
      started[b] = problem.buffers[b].from_start;
      if (problem.buffers[b].to_end) ++waiting[b];
      if (started[b] && waiting[b] > 0) alive += problem.buffers[b].bytes;
    }
    peak = alive;
  }

  Cost cost(const Steps& steps, std::int32_t s) const {
    const OrderProblem& problem = steps.problem();
    const OrderStep& step = problem.steps[u(s)];
    std::int64_t begun = 0;
    std::int64_t ended = 0;
    for (const std::int32_t b : steps.touches[u(s)]) {
      if (!started[u(b)]) begun += problem.buffers[u(b)].bytes;
      if (waiting[u(b)] == 1) ended += problem.buffers[u(b)].bytes;
    }
    return {alive + begun + step.scratch - credit(problem, step), alive + begun - ended};
  }

  /// Runs a ready step.
  void run(const Steps& steps, std::int32_t s) {
    const Cost c = cost(steps, s);
    peak = std::max(peak, c.during);
    alive = c.after;
    for (const std::int32_t b : steps.touches[u(s)]) {
      started[u(b)] = true;
      --waiting[u(b)];
    }
    add(done, u(s));
    order.push_back(s);
    ready.erase(std::find(ready.begin(), ready.end(), s));
    for (const std::int32_t f : steps.followers[u(s)])
      if (--missing[u(f)] == 0) ready.push_back(f);
  }

  /// Runs what can only help: fits below the peak that is allowed anyway and leaves no more alive.
  void run_free_steps(const Steps& steps, std::int64_t allowed) {
    for (std::size_t i = 0; i < ready.size();) {
      const Cost c = cost(steps, ready[i]);
      if (c.after > alive || c.during > std::max(allowed, peak)) {
        ++i;
        continue;
      }
      run(steps, ready[i]);
      i = 0;
    }
  }

  Words done;
  std::vector<std::int32_t> missing;  ///< by step: predecessors that have not run
  std::vector<std::int32_t> waiting;  ///< by buffer: steps that will touch it
  std::vector<bool> started;          ///< by buffer
  std::vector<std::int32_t> ready;
  std::vector<std::int32_t> order;
  std::int64_t alive = 0;
  std::int64_t peak = 0;

 private:
  /// Bytes that count once because results go where operands lie that end here.
  std::int64_t credit(const OrderProblem& problem, const OrderStep& step) const {
    std::int64_t sum = 0;
    for (const std::int32_t written : step.writes) {
      if (started[u(written)]) continue;
      std::int64_t best = 0;
      for (const OrderStep::Overwrite& o : step.overwrites)
        if (o.written == written && waiting[u(o.read)] == 1 && started[u(o.read)])
          best = std::max(best, saved_by(problem, o));
      sum += best;
    }
    return sum;
  }
};

Point replay(const Steps& steps, const std::vector<std::int32_t>& order) {
  Point point(steps);
  for (const std::int32_t s : order) point.run(steps, s);
  return point;
}

/// Ancestors and descendants of every step.
class Relatives {
 public:
  explicit Relatives(const Steps& steps) : before_(steps.count(), Words(steps.words())), after_(before_) {
    for (std::size_t s = 0; s < steps.count(); ++s)
      for (const std::int32_t p : steps.before[s]) merge(before_[s], before_[u(p)], u(p));
    for (std::size_t s = steps.count(); s-- > 0;)
      for (const std::int32_t f : steps.followers[s]) merge(after_[s], after_[u(f)], u(f));
  }
  bool comes_before(std::int32_t a, std::size_t s) const { return has(before_[s], u(a)); }
  bool comes_after(std::int32_t a, std::size_t s) const { return has(after_[s], u(a)); }

 private:
  static void merge(Words& set, const Words& other, std::size_t member) {
    for (std::size_t w = 0; w < set.size(); ++w) set[w] |= other[w];
    add(set, member);
  }
  std::vector<Words> before_, after_;
};

/// Of more steps than this only what each touches is looked at, because the tables of relatives grow with the square.
constexpr std::size_t kMaxRelated = 4'000;

class Search {
 public:
  Search(const OrderProblem& problem, const OrderOptions& options, std::vector<std::int32_t> known)
      : steps_(problem), options_(options) {
    result_.order = std::move(known);
    if (result_.order.empty()) {
      result_.order.resize(problem.steps.size());
      std::iota(result_.order.begin(), result_.order.end(), 0);
    }
    result_.peak = replay(steps_, result_.order).peak;
    result_.bound = std::min(order_bound(problem), result_.peak);
  }

  OrderResult run() {
    if (!result_.is_optimal()) run_beam();
    if (!result_.is_optimal()) run_exact();
    return std::move(result_);
  }

 private:
  bool is_spent() {
    if (result_.used > options_.step_budget) return true;
    return options_.deadline && std::chrono::steady_clock::now() >= *options_.deadline;
  }

  void keep(const Point& point) {
    if (point.order.size() != steps_.count() || point.peak >= result_.peak) return;
    result_.peak = point.peak;
    result_.order = point.order;
  }

  /// A step that one of the points of a level might run next.
  struct Choice {
    std::int64_t peak;
    std::int64_t after;
    std::size_t parent;
    std::int32_t step;
  };

  std::vector<Choice> choices_of(const std::vector<Point>& level) {
    std::vector<Choice> choices;
    for (std::size_t p = 0; p < level.size(); ++p) {
      for (const std::int32_t s : level[p].ready) {
        const Cost c = level[p].cost(steps_, s);
        const std::int64_t peak = std::max({c.during, level[p].peak, result_.bound});
        if (peak < result_.peak) choices.push_back({peak, c.after, p, s});
      }
    }
    std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return std::pair(a.peak, a.after) < std::pair(b.peak, b.after);
    });
    return choices;
  }

  /// Level by level: after so many choices, the points with least alive compete.
  void run_beam() {
    std::vector<Point> level;
    level.emplace_back(steps_);
    level[0].run_free_steps(steps_, result_.bound);
    while (!level.empty() && !is_spent()) {
      std::vector<Point> next;
      for (const Choice& choice : choices_of(level)) {
        if (next.size() == 3 * kBeamWidth) break;
        result_.used += 4 * steps_.work();
        Point point = level[choice.parent];
        point.run(steps_, choice.step);
        point.run_free_steps(steps_, result_.bound);
        keep(point);
        if (std::ranges::any_of(next, [&](const Point& other) { return other.done == point.done; })) continue;
        next.push_back(std::move(point));
      }
      std::stable_sort(next.begin(), next.end(), [this](const Point& a, const Point& b) {
        return std::pair(std::max(a.peak, result_.bound), a.alive) <
               std::pair(std::max(b.peak, result_.bound), b.alive);
      });
      if (next.size() > kBeamWidth) next.erase(next.begin() + kBeamWidth, next.end());
      level = std::move(next);
    }
  }

  /// A set of finished steps that was reached, and how.
  struct State {
    std::int64_t peak;
    std::int32_t parent;
    std::int32_t step;  ///< run from the parent, then all free steps
    std::int32_t depth;
    bool expanded;
  };

  struct WordsHash {
    std::size_t operator()(const Words& words) const {
      std::uint64_t hash = 0x9e3779b97f4a7c15U;
      for (const std::uint64_t w : words) {
        hash = (hash ^ w) * 0xbf58476d1ce4e5b9U;
        hash ^= hash >> 29;
      }
      return static_cast<std::size_t>(hash);
    }
  };

  struct Entry {
    std::int64_t peak;
    std::int32_t depth;
    std::int32_t state;
    bool operator<(const Entry& o) const {  // the top of the heap has the smallest peak, then most steps done
      if (peak != o.peak) return peak > o.peak;
      if (depth != o.depth) return depth < o.depth;
      return state < o.state;
    }
  };

  Point point_of(std::int32_t state) const {
    std::vector<std::int32_t> chosen;
    for (std::int32_t i = state; states_[u(i)].parent >= 0; i = states_[u(i)].parent) chosen.push_back(i);
    Point point(steps_);
    point.run_free_steps(steps_, states_.front().peak);
    for (std::size_t i = chosen.size(); i-- > 0;) {
      const State& s = states_[u(chosen[i])];
      point.run(steps_, s.step);
      point.run_free_steps(steps_, s.peak);  // what was allowed when the state was reached
    }
    return point;
  }

  void reach(const Point& point, std::int32_t parent, std::int32_t step) {
    const std::int64_t peak = std::max(point.peak, result_.bound);
    const auto [place, fresh] = known_.try_emplace(point.done, static_cast<std::int32_t>(states_.size()));
    const auto depth = static_cast<std::int32_t>(point.order.size());
    if (fresh) {
      states_.push_back({peak, parent, step, depth, false});
    } else {
      State& old = states_[u(place->second)];
      if (old.expanded || old.peak <= peak) return;
      old = {peak, parent, step, depth, false};
    }
    open_.push({peak, depth, place->second});
  }

  std::int64_t state_bytes() const {
    return static_cast<std::int64_t>(sizeof(State) + sizeof(Entry) + 96 + 8 * steps_.words());
  }

  /// Smallest peak first: when everything has run at the top of the heap, no order is better.
  void run_exact() {
    Point first(steps_);
    first.run_free_steps(steps_, result_.bound);
    reach(first, -1, -1);
    while (!open_.empty()) {
      const Entry top = open_.top();
      open_.pop();
      State& state = states_[u(top.state)];
      if (state.expanded || state.peak != top.peak) continue;
      if (top.peak >= result_.peak) break;
      result_.bound = std::max(result_.bound, top.peak);
      if (is_spent() || static_cast<std::int64_t>(states_.size()) * state_bytes() > kMaxOrderBytes) return;
      state.expanded = true;
      const Point point = point_of(top.state);
      result_.used += steps_.work() * (2 + static_cast<std::int64_t>(point.ready.size()) / 2);
      if (point.order.size() == steps_.count()) {
        keep(point);
        break;
      }
      for (const std::int32_t s : point.ready) {
        if (point.cost(steps_, s).during >= result_.peak) continue;
        Point next = point;
        next.run(steps_, s);
        next.run_free_steps(steps_, std::max(result_.bound, next.peak));
        reach(next, top.state, s);
      }
    }
    result_.bound = result_.peak;
  }

  Steps steps_;
  const OrderOptions& options_;
  OrderResult result_;
  std::vector<State> states_;
  std::unordered_map<Words, std::int32_t, WordsHash> known_;
  std::priority_queue<Entry> open_;
};

}  // namespace

std::int64_t peak_of_order(const OrderProblem& problem, const std::vector<std::int32_t>& order) {
  return replay(Steps(problem), order).peak;
}

std::int64_t order_bound(const OrderProblem& problem) {
  const Steps steps(problem);
  const bool related = steps.count() <= kMaxRelated;
  const std::optional<Relatives> relatives = related ? std::optional<Relatives>(steps) : std::nullopt;
  std::vector<std::vector<std::int32_t>> writers(problem.buffers.size());
  std::vector<std::vector<std::int32_t>> users(problem.buffers.size());
  for (std::size_t s = 0; s < steps.count(); ++s) {
    for (const std::int32_t b : steps.touches[s]) users[u(b)].push_back(static_cast<std::int32_t>(s));
    for (const std::int32_t b : problem.steps[s].writes) writers[u(b)].push_back(static_cast<std::int32_t>(s));
  }
  std::vector<std::int32_t> every(related ? problem.buffers.size() : 0);
  std::iota(every.begin(), every.end(), 0);
  std::int64_t bound = 0;
  for (std::size_t s = 0; s < steps.count(); ++s) {
    const auto begun = [&](std::int32_t b) {
      return problem.buffers[u(b)].from_start || std::ranges::any_of(writers[u(b)], [&](std::int32_t w) {
               return u(w) == s || (related && relatives->comes_before(w, s));
             });
    };
    const auto needed = [&](std::int32_t b) {
      return problem.buffers[u(b)].to_end || std::ranges::any_of(users[u(b)], [&](std::int32_t r) {
               return u(r) == s || (related && relatives->comes_after(r, s));
             });
    };
    std::int64_t alive = problem.steps[s].scratch;
    for (const std::int32_t b : related ? every : steps.touches[s])
      if (begun(b) && needed(b)) alive += problem.buffers[u(b)].bytes;
    for (const std::int32_t written : distinct(problem.steps[s].writes)) {
      std::int64_t credit = 0;
      for (const OrderStep::Overwrite& o : problem.steps[s].overwrites)
        if (o.written == written) credit = std::max(credit, saved_by(problem, o));
      alive -= credit;
    }
    bound = std::max(bound, alive);
  }
  return bound;
}

OrderResult search_order(const OrderProblem& problem, const OrderOptions& options, std::vector<std::int32_t> known) {
  return Search(problem, options, std::move(known)).run();
}

}  // namespace bantam::plan
