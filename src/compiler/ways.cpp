#include "compiler/ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <utility>

#include "compiler/overlaps.h"
#include "compiler/patch_rows.h"
#include "ops/data/slice/slice.h"
#include "package/format.h"

namespace bantam::compiler {
namespace {

/// In_place costs nothing, so that only tests plan without it.
constexpr PlanChoice kChoices[] = {{false, true},
                                   {false, false},
                                   {true, true},
                                   {true, false},
                                   {false, true, true, true},
                                   {false, false, true, true},
                                   {true, true, true, true},
                                   {true, false, true, true}};

/// Are some values read or written in parts? Only those fill or empty bit by bit.
bool has_partial_values(const graph::Graph& graph) {
  return std::ranges::any_of(
      graph.nodes, [](const graph::Node& node) { return node.op->input_view != nullptr || node.is(ops::kSlice); });
}

constexpr std::int64_t kPadding = static_cast<std::int64_t>(format::kBufferAlignment);
constexpr int kMaxSearches = 3;
constexpr int kMaxOverlapRounds = 64;

plan::SolveOptions greedily() {
  plan::SolveOptions options;
  options.step_budget = 0;
  return options;
}

class Planner {
 public:
  Planner(const graph::Graph& graph, const PlanOptions& options) : graph_(graph), options_(options) {
    if (options.seconds) {
      const auto time = std::chrono::duration<double>(*options.seconds);
      deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
    }
  }

  Result<PlannedModel> run() {
    for (const auto step : {&Planner::try_choices, &Planner::search_orders, &Planner::overlap, &Planner::close_gap}) {
      if (auto done = (this->*step)(); !done) return fail(std::move(done.error()));
      if (options_.quick) break;
    }
    trials_[best_].kept = true;
    PlannedModel& model = *plan_;
    model.method += ", " + describe(tried_[best_]);
    model.trials = std::move(trials_);
    model.order_bound_bytes = order_bound_ ? std::clamp<std::int64_t>(*order_bound_, 0, model.lower_bound_bytes) : 0;
    return std::move(model);
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Plans and keeps the plan when it is the smallest so far. `last_` is the plan afterwards.
  Result<void> plan(const Way& way, const plan::SolveOptions& search, std::optional<OrderCosts>* costs) {
    auto planned = plan_in_one_way(graph_, options_, way, search, costs);
    if (!planned) return fail(std::move(planned.error()));
    last_ = std::move(*planned);
    const bool better = !plan_ || last_->activation_bytes < plan_->activation_bytes;
    // Of the many ways to overlap only those that help are worth a line.
    if (!better && !way.overlaps.empty()) return {};
    trials_.push_back({describe(way) + (search.step_budget > 0 ? ", places searched" : ""), last_->activation_bytes,
                       last_->lower_bound_bytes, work_of(last_->graph), false});
    tried_.push_back(way);
    if (!better) return {};
    plan_ = *last_;
    best_ = trials_.size() - 1;
    return {};
  }

  /// Greedy placement is enough to tell the ways apart; the search for places then works on the best ones.
  Result<void> try_choices() {
    std::span<const PlanChoice> choices = kChoices;
    if (options_.choice) choices = {&*options_.choice, 1};
    for (const PlanChoice& choice : choices) {
      if (plan_ && choice.strips && (options_.whole_blocks || !has_partial_values(graph_))) continue;
      std::optional<OrderCosts> costs;
      const bool models_own = !choice.by_memory && !choice.strips && !options_.choice && !options_.quick;
      if (auto done = plan({choice}, greedily(), models_own ? &costs : nullptr); !done) return done;
      if (costs) costs_.emplace_back(choice, std::move(*costs));
    }
    return {};
  }

  /// Costs speak of the graph in the model's order.
  Result<void> search_orders() {
    if (costs_.empty()) return {};
    const auto models = order_of(graph_, options_, {});
    if (!models) return fail(models.error());
    bool proven = true;
    for (const auto& [choice, costs] : costs_) {
      say("looking for an order that needs less");
      std::int64_t bound = 0;
      const bool can_reorder = !costs.problem.steps.empty();  // not with control flow, which is bounded only
      if (can_reorder) {
        const plan::OrderResult found = plan::search_order(costs.problem, order_options());
        bound = found.bound;
        if (found.peak < plan_->activation_bytes)
          if (auto done = plan(way_of(choice, *models, found.order), greedily(), nullptr); !done) return done;
      }
      if (!costs.exact) {
        const plan::OrderResult relaxed = plan::search_order(costs.relaxed, order_options());
        bound = relaxed.bound;
        if (can_reorder) hopeful_.emplace_back(relaxed.peak, way_of(choice, *models, relaxed.order));
      }
      proven = proven && costs.exact;
      order_bound_ = std::min(order_bound_.value_or(bound), bound - costs.rounding);
    }
    // Rounding hides no order: what is proved smallest with it differs from the smallest by less than one padding.
    if (proven && plan_->lower_bound_bytes - *order_bound_ < kPadding) order_bound_ = plan_->lower_bound_bytes;
    return {};
  }

  static Way way_of(const PlanChoice& choice, const std::vector<graph::NodeId>& models,
                    const std::vector<std::int32_t>& order) {
    Way way{choice};
    for (const std::int32_t n : order) way.order.push_back(models[static_cast<std::size_t>(n)]);
    return way;
  }

  plan::OrderOptions order_options() const {
    plan::OrderOptions options;
    if (!deadline_) return options;
    options.step_budget = plan::kUnlimitedSearchSteps;
    options.deadline = Clock::now() + (*deadline_ - Clock::now()) / 8;
    return options;
  }

  /// In the best way so far, and in orders that would be better if everything overlapped that may.
  Result<void> overlap() {
    if (!tried_[best_].choice.in_place) return {};
    if (auto done = overlap_at_peaks(tried_[best_]); !done) return done;
    for (const auto& [peak, way] : hopeful_) {
      if (peak >= plan_->activation_bytes) continue;
      if (auto done = overlap_at_peaks(way); !done) return done;
    }
    return {};
  }

  /// Lets results overlap operands where the peak is, and where it is then.
  Result<void> overlap_at_peaks(Way way) {
    if (auto done = plan(way, greedily(), nullptr); !done) return done;
    for (int round = 0; round < kMaxOverlapRounds && add_overlaps_at_peak(*last_, &way.overlaps); ++round)
      if (auto done = plan(way, greedily(), nullptr); !done) return done;
    return {};
  }

  /// Searches for places where the greedy ones miss the lower bound: of the best way, then of others that could beat
  /// it.
  Result<void> close_gap() {
    std::vector<std::size_t> order(trials_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto rank = [&](std::size_t t) { return std::pair(t == best_ ? 0 : 1, trials_[t].lower_bound_bytes); };
    std::ranges::stable_sort(order, {}, rank);
    int searches = 0;
    for (const std::size_t t : order) {
      if (trials_[t].lower_bound_bytes >= plan_->activation_bytes || searches == kMaxSearches) continue;
      plan::SolveOptions search;
      search.step_budget = options_.search_steps >> searches;
      if (search.step_budget == 0) continue;
      if (deadline_) {
        search.step_budget = plan::kUnlimitedSearchSteps;
        search.deadline = Clock::now() + (*deadline_ - Clock::now()) / 2;
      }
      say(fmt::format("looking for places that need less than {} bytes", plan_->activation_bytes));
      if (auto done = plan(Way(tried_[t]), search, nullptr); !done) return done;
      ++searches;
    }
    return {};
  }

  void say(const std::string& what) const {
    if (options_.progress) options_.progress(what);
  }

  const graph::Graph& graph_;
  const PlanOptions& options_;
  std::optional<Clock::time_point> deadline_;
  std::vector<PlanTrial> trials_;
  std::vector<Way> tried_;            ///< by trial
  std::size_t best_ = 0;              ///< trial
  std::optional<PlannedModel> plan_;  ///< of the best trial
  std::optional<PlannedModel> last_;
  std::vector<std::pair<PlanChoice, OrderCosts>> costs_;  ///< by sharing
  std::vector<std::pair<std::int64_t, Way>> hopeful_;     ///< with what they would need at least
  std::optional<std::int64_t> order_bound_;
};

}  // namespace

std::string describe(const Way& way) {
  const PlanChoice& choice = way.choice;
  std::string text = !way.order.empty() ? "searched order" : choice.by_memory ? "order by memory" : "model order";
  if (!choice.concat_views) text += ", concat copies";
  if (!choice.in_place) text += ", nothing in place";
  if (choice.strips) text += ", row by row";
  if (const auto overlaps = std::ranges::count(way.overlaps, true); overlaps > 0)
    text += fmt::format(", {} overlapping", overlaps);
  return text;
}

Result<PlannedModel> plan_in_the_best_way(const graph::Graph& graph, const PlanOptions& options) {
  return Planner(graph, options).run();
}

}  // namespace bantam::compiler
