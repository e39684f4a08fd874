#include "compiler/ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "compiler/body_orders.h"
#include "compiler/overlaps.h"
#include "compiler/patch_rows.h"
#include "compiler/windows.h"
#include "graph/control.h"
#include "ops/data/slice/slice.h"
#include "package/format.h"

namespace bantam::compiler {
namespace {

/// What in_place costs, the variations in single places give back; only tests plan without it.
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
/// Plans that share otherwise in single places, and the largest graph for which they are made: bounds the time.
constexpr int kMaxVariations = 24;
constexpr std::size_t kMaxVariedNodes = 1000;

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
    for (const auto step : {&Planner::try_choices, &Planner::search_orders, &Planner::overlap, &Planner::close_gap,
                            &Planner::vary_views}) {
      if (auto done = (this->*step)(); !done) return fail(std::move(done.error()));
      if (options_.quick || plan_->activation_bytes <= options_.enough) break;
    }
    trials_[best_].kept = true;
    PlannedModel& model = *plan_;
    model.method += ", " + describe(tried_[best_]);
    // A plan that was tried may need less than the one that is kept, which keeps smaller states or copies less.
    std::int64_t least = model.lower_bound_bytes;
    for (const PlanTrial& trial : trials_) least = std::min(least, trial.lower_bound_bytes);
    model.order_bound_bytes = order_bound_ ? std::clamp<std::int64_t>(*order_bound_, 0, least) : 0;
    model.trials = std::move(trials_);
    return std::move(model);
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct Bounded {
    std::int64_t bytes = 0;  ///< that the way needs at least
    Way way;
  };

  /// Plans and keeps the plan when it is the smallest so far. `last_` is the plan afterwards.
  Result<void> plan(const Way& way, const plan::SolveOptions& search, std::optional<OrderCosts>* costs) {
    auto planned = plan_in_one_way(graph_, options_, way, search, costs);
    if (!planned) return fail(std::move(planned.error()));
    last_ = std::move(*planned);
    const bool better = !plan_ || cost_of(*last_) < cost_of(*plan_);
    // Of the many ways to overlap, or to share in single places, only those that help are worth a line.
    if (!better && !(way.overlaps.empty() && way.other_views.empty() && way.windows.empty() && way.apart.empty()))
      return {};
    trials_.push_back({describe(way) + (search.step_budget > 0 ? ", places searched" : ""), last_->activation_bytes,
                       last_->lower_bound_bytes, work_of(last_->graph), false});
    tried_.push_back(way);
    if (!better) return {};
    plan_ = *last_;
    best_ = trials_.size() - 1;
    return {};
  }

  /// What plans are compared by: all that they keep of the arena, then what they copy.
  static std::pair<std::int64_t, std::int64_t> cost_of(const PlannedModel& model) {
    return {model.activation_bytes + model.state_bytes + 2 * model.swap_bytes, model.moved_bytes};
  }

  /// Greedy placement is enough to tell the ways apart; the search for places then works on the best ones.
  Result<void> try_choices() {
    std::span<const PlanChoice> choices = kChoices;
    if (options_.choice) choices = {&*options_.choice, 1};
    const auto models = order_of(graph_, options_, {});
    const auto by_memory = order_of(graph_, options_, {.choice = {.by_memory = true}});
    if (!models || !by_memory) return fail(models ? by_memory.error() : models.error());
    const bool one_order = *models == *by_memory && !graph::has_control(graph_);
    for (const PlanChoice& choice : choices) {
      if (plan_ && (plan_->activation_bytes <= options_.enough || (choice.by_memory && one_order))) continue;
      if (plan_ && choice.strips && (options_.whole_blocks || !has_partial_values(graph_))) continue;
      std::optional<OrderCosts> costs;
      const bool models_own = !choice.by_memory && !choice.strips && !options_.choice && !options_.quick;
      Way way{.choice = choice, .named = choice.by_memory ? *by_memory : *models};
      if (auto done = plan(way, greedily(), models_own ? &costs : nullptr); !done) return done;
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
        if (can_reorder) hopeful_.push_back({relaxed.peak, way_of(choice, *models, relaxed.order)});
      }
      proven = proven && costs.exact;
      order_bound_ = std::min(order_bound_.value_or(bound), bound - costs.rounding);
    }
    if (graph::has_control(graph_))
      if (auto done = search_inside(); !done) return done;
    // Rounding hides no order: what is proved smallest with it differs from the smallest by less than one padding.
    if (proven && plan_->lower_bound_bytes - *order_bound_ < kPadding) order_bound_ = plan_->lower_bound_bytes;
    return {};
  }

  /// Orders of bodies, and of the steps around them: either may be worth it without the other.
  Result<void> search_inside() {
    auto found = search_inner_orders(graph_, options_, order_options());
    if (!found) return fail(std::move(found.error()));
    for (const bool outside : {false, true}) {
      Way way;
      way.body_orders = found->bodies;
      if (outside) way.order = found->order;
      if (auto done = plan(way, greedily(), nullptr); !done) return done;
    }
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
    for (const Bounded& hopeful : hopeful_) {
      if (hopeful.bytes >= plan_->activation_bytes) continue;
      if (auto done = overlap_at_peaks(hopeful.way); !done) return done;
    }
    return {};
  }

  /// Lets results overlap operands where the peak is, and where it is then.
  Result<void> overlap_at_peaks(Way way) {
    if (auto done = plan(way, greedily(), nullptr); !done) return done;
    for (int round = 0; round < kMaxOverlapRounds && add_overlaps_at_peak(*last_, &way.overlaps); ++round)
      if (auto done = plan(way, greedily(), nullptr); !done) return done;
    if (may_be_better(*last_)) missed_.push_back({last_->lower_bound_bytes, std::move(way)});
    return {};
  }

  /// Searches for places where the greedy ones miss the lower bound: of the best way, then of others that could beat
  /// it.
  Result<void> close_gap() {
    std::vector<Bounded> open = std::move(missed_);
    for (std::size_t t = 0; t < trials_.size(); ++t)
      if (t != best_) open.push_back({trials_[t].lower_bound_bytes, tried_[t]});
    std::ranges::stable_sort(open, {}, &Bounded::bytes);
    open.insert(open.begin(), {trials_[best_].lower_bound_bytes, tried_[best_]});
    int searches = 0;
    for (const auto& [bytes, way] : open) {
      if (bytes >= plan_->activation_bytes || searches == kMaxSearches) continue;
      plan::SolveOptions search;
      search.step_budget = options_.search_steps >> searches;
      if (search.step_budget == 0) continue;
      if (deadline_) {
        search.step_budget = plan::kUnlimitedSearchSteps;
        search.deadline = Clock::now() + (*deadline_ - Clock::now()) / 2;
      }
      say(fmt::format("looking for places that need less than {} bytes", plan_->activation_bytes));
      if (auto done = plan(way, search, nullptr); !done) return done;
      ++searches;
    }
    return {};
  }

  /// Views for all or for none are rarely best: where the best plan copies by choice, views for some; where it does
  /// not, copies for those that are in the way at the peak. Then windows where states are.
  Result<void> vary_views() {
    if (options_.choice || graph_.nodes.size() > kMaxVariedNodes) return {};
    std::vector<std::size_t> nodes;
    const PlannedModel& model = *plan_;
    for (const PlannedStep& step : model.steps)
      if (step.copies == CopyReason::kPreferred) nodes.push_back(static_cast<std::size_t>(step.node));
    if (tried_[best_].choice.concat_views) {
      for (std::size_t n = 0; n < model.graph.nodes.size(); ++n)
        if (model.graph.nodes[n].op->input_view != nullptr && is_at_peak(model, model.graph.nodes[n].outputs[0]))
          nodes.push_back(n);
    }
    variations_ = kMaxVariations;
    if (auto done = vary(&Way::other_views, nodes); !done) return done;
    if (auto done = vary(&Way::apart, costly_in_place()); !done) return done;
    if (!options_.windows || !options_.instances.empty() || !plan_->flow.kinds.empty()) return {};
    nodes.clear();
    for (const Window& window : find_windows(plan_->graph)) nodes.push_back(static_cast<std::size_t>(window.join));
    return vary(&Way::windows, nodes);
  }

  /// Nodes whose result had better not lie over an operand: it keeps memory at the peak that was needed for a larger
  /// one, or, where places miss the lower bound, what holds one after the other may be hard to place.
  std::vector<std::size_t> costly_in_place() const {
    std::vector<std::size_t> nodes;
    const PlannedModel& model = *plan_;
    const bool gap = model.activation_bytes > model.lower_bound_bytes;
    for (const PlannedStep& step : model.steps) {
      const graph::Node& node = model.graph.node(step.node);
      const graph::ValueId result = node.outputs.empty() ? graph::kNone : node.outputs[0];
      if (result == graph::kNone || block_of(model, result) < 0 || !(gap || is_at_peak(model, result))) continue;
      const auto bytes = [&](graph::ValueId id) { return model.graph.value(id).desc.bytes(); };
      const bool costly = std::ranges::any_of(node.inputs, [&](graph::ValueId operand) {
        return operand != graph::kNone && block_of(model, operand) == block_of(model, result) &&
               (gap || bytes(operand) > bytes(result));
      });
      if (costly) nodes.push_back(static_cast<std::size_t>(step.node));
    }
    return nodes;
  }

  static std::int32_t block_of(const PlannedModel& model, graph::ValueId id) {
    return model.value_blocks[static_cast<std::size_t>(id)];
  }

  static bool is_at_peak(const PlannedModel& model, graph::ValueId id) {
    const std::int32_t block = id == graph::kNone ? -1 : block_of(model, id);
    if (block < 0) return false;
    const PlanBlock& b = model.blocks[static_cast<std::size_t>(block)];
    return b.lower <= model.peak_step && model.peak_step < b.upper;
  }

  /// Does the other thing at all these nodes, or, where that is no better, at either half of them.
  Result<void> vary(std::vector<bool> Way::*choices, std::span<const std::size_t> nodes) {
    if (nodes.empty() || variations_ == 0) return {};
    --variations_;
    Way way = tried_[best_];
    (way.*choices).resize(plan_->graph.nodes.size(), false);
    for (const std::size_t n : nodes) (way.*choices)[n] = !(way.*choices)[n];
    const std::size_t best = best_;
    if (auto done = plan(way, greedily(), nullptr); !done) return done;
    if (best_ == best && options_.search_steps > 0 && may_be_better(*last_)) {
      plan::SolveOptions search;
      search.step_budget = options_.search_steps / kMaxVariations;
      if (auto done = plan(way, search, nullptr); !done) return done;
    }
    if (best_ != best || nodes.size() == 1) return {};
    if (auto done = vary(choices, nodes.first(nodes.size() / 2)); !done) return done;
    return vary(choices, nodes.subspan(nodes.size() / 2));
  }

  /// With other places for the same buffers.
  bool may_be_better(const PlannedModel& model) const {
    auto [bytes, moved] = cost_of(model);
    bytes -= model.activation_bytes - model.lower_bound_bytes;
    return std::pair(bytes, moved) < cost_of(*plan_);
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
  std::vector<Bounded> hopeful_;                          ///< if everything overlapped that may
  std::vector<Bounded> missed_;                           ///< whose greedy places need more than their bound
  std::optional<std::int64_t> order_bound_;
  int variations_ = 0;  ///< that may still be tried
};

}  // namespace

std::string describe(const Way& way) {
  const PlanChoice& choice = way.choice;
  std::string text = !way.order.empty() ? "searched order" : choice.by_memory ? "order by memory" : "model order";
  if (!way.body_orders.empty()) text += ", searched in branches and loops";
  if (!choice.concat_views) text += ", concat copies";
  if (!choice.in_place) text += ", nothing in place";
  if (choice.strips) text += ", row by row";
  if (const auto overlaps = std::ranges::count(way.overlaps, true); overlaps > 0)
    text += fmt::format(", {} overlapping", overlaps);
  if (const auto views = std::ranges::count(way.other_views, true); views > 0)
    text += fmt::format(", {} {}", views, choice.concat_views ? "concats copied" : "concat views");
  if (const auto apart = std::ranges::count(way.apart, true); apart > 0)
    text += fmt::format(", {} not in place", apart);
  if (const auto windows = std::ranges::count(way.windows, true); windows > 0)
    text += fmt::format(", {} windows in states", windows);
  return text;
}

Result<PlannedModel> plan_in_the_best_way(const graph::Graph& graph, const PlanOptions& options) {
  return Planner(graph, options).run();
}

}  // namespace bantam::compiler
