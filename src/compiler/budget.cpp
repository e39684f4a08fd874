#include "compiler/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "compiler/fuse_separable.h"
#include "compiler/patch_rows.h"
#include "compiler/recompute.h"
#include "compiler/row_rules.h"
#include "graph/control.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

/// Patches may compute so much of the model again, at most.
constexpr double kMaxAddedWork = 0.2;
/// Nodes before and after the peak that a stage may take in.
constexpr NodeId kReach = 48;
constexpr int kProbes[] = {8, 48};      ///< bands by which stages are compared first
constexpr std::size_t kStages = 16;     ///< stages that are tried with other numbers of bands
constexpr std::size_t kPlanned = 5;     ///< candidates of each ranking that are planned
constexpr std::size_t kMaxRounds = 12;  ///< reductions of one model
/// Nodes of all graphs that are planned for one model: bounds the time, some seconds.
constexpr std::size_t kMaxEffort = 100'000;

/// Bytes of the values alive at each node, in the graph's order, with nothing shared: what no plan can know better
/// before kernels are chosen.
class Profile {
 public:
  explicit Profile(const Graph& graph) : graph_(graph), lives_(graph.values.size(), {-1, -1}) {
    const auto end = static_cast<std::int64_t>(graph.nodes.size());
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const ValueId id : graph.nodes[n].inputs)
        if (id != kNone) life(id).last = static_cast<std::int64_t>(n);
      for (const ValueId id : graph.nodes[n].outputs)
        if (id != kNone) life(id) = {static_cast<std::int64_t>(n), static_cast<std::int64_t>(n)};
    }
    graph::for_each_result(graph, [&](ValueId id) { life(id).last = end; });
    for (const graph::State& state : graph.states) {
      life(state.in) = {end, -1};  // not among the activations
      life(state.out) = {end, -1};
    }
    std::vector<std::int64_t> change(graph.nodes.size() + 1, 0);
    for (std::size_t v = 0; v < lives_.size(); ++v) {
      const Life& l = lives_[v];
      if (bytes(static_cast<ValueId>(v)) == 0 || l.last < l.def) continue;
      change[static_cast<std::size_t>(std::max<std::int64_t>(l.def, 0))] += bytes(static_cast<ValueId>(v));
      if (l.last + 1 <= end) change[static_cast<std::size_t>(l.last + 1)] -= bytes(static_cast<ValueId>(v));
    }
    std::int64_t sum = 0;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) alive_.push_back(sum += change[n]);
  }

  NodeId peak() const { return static_cast<NodeId>(std::ranges::max_element(alive_) - alive_.begin()); }
  std::int64_t alive(NodeId n) const { return alive_[static_cast<std::size_t>(n)]; }

  /// Bytes that lie there all the while the nodes [first, last] run, and that none of them reads or writes.
  std::int64_t across(NodeId first, NodeId last) const {
    std::int64_t sum = 0;
    for (std::size_t v = 0; v < lives_.size(); ++v)
      if (lives_[v].def < first && lives_[v].last > last) sum += bytes(static_cast<ValueId>(v));
    std::vector<ValueId> seen;
    for (NodeId n = first; n <= last; ++n) {
      for (const ValueId id : graph_.node(n).inputs) {
        if (id == kNone || std::ranges::count(seen, id) > 0) continue;
        seen.push_back(id);
        const Life& l = lives_[static_cast<std::size_t>(id)];
        if (l.def < first && l.last > last) sum -= bytes(id);
      }
    }
    return sum;
  }

 private:
  struct Life {
    std::int64_t def;
    std::int64_t last;
  };
  Life& life(ValueId id) { return lives_[static_cast<std::size_t>(id)]; }

  /// A view occupies nothing of its own.
  std::int64_t bytes(ValueId id) const {
    const graph::Value& v = graph_.value(id);
    if (v.constant) return 0;
    if (v.producer != kNone && graph_.node(v.producer).op->output_view != nullptr) return 0;
    return v.desc.bytes();
  }

  const Graph& graph_;
  std::vector<Life> lives_;
  std::vector<std::int64_t> alive_;
};

struct Candidate {
  Patching patching;
  std::int64_t estimate = 0;
};

struct Plan {
  PlannedModel model;
  std::int64_t work = 0;
  std::int64_t copied_bytes = 0;
  std::size_t fused = 0;  ///< pairs of convolutions
};

class Reducer {
 public:
  Reducer(const Graph& graph, const PlanOptions& options, PlannedModel unreduced, std::int64_t target,
          const std::function<void(const std::string&)>& progress)
      : graph_(graph),
        options_(options),
        target_(target),
        progress_(progress),
        profile_(graph),
        work_(work_of(graph)),
        can_patch_(options.instances.empty() && options.dimensions.empty() && graph.measured.empty() &&
                   !graph::has_control(graph)),
        best_{std::move(unreduced), work_, 0, 0} {
    options_.enough = target;
  }

  Result<ReducedModel> run() {
    for (std::size_t round = 0; round < kMaxRounds && !fits(best_); ++round) {
      // Where scratch alone stands in the way, splitting values would not help.
      auto steps = std::array{&Reducer::fuse, &Reducer::recompute, &Reducer::patch, &Reducer::spare_scratch};
      if (scratch_decides()) std::rotate(steps.begin(), steps.end() - 1, steps.end());
      bool smaller = false;
      for (const auto step : steps) {
        auto reduced = (this->*step)();
        if (!reduced) return fail(std::move(reduced.error()));
        smaller = *reduced;
        if (smaller) break;
      }
      if (!smaller) break;
    }
    result_.planned = std::move(best_.model);
    return std::move(result_);
  }

 private:
  bool fits(const Plan& plan) const { return plan.model.activation_bytes <= target_; }

  void say(const std::string& what) const {
    if (progress_)
      progress_(fmt::format("{}: {} of {} bytes, trying {}", graph_.name, best_.model.activation_bytes, target_, what));
  }

  /// What makes a plan another one than the first.
  struct Recipe {
    std::vector<Patching> patchings{};  ///< by nodes of graph_, apart from each other
    bool fused = false;                 ///< depthwise with pointwise convolutions
    int recomputations = 0;             ///< peaks at which cheap values are computed again
  };

  /// Nothing when the nodes cannot be split so.
  Result<std::optional<Plan>> plan(const Recipe& recipe, const PlanOptions& options) {
    Plan made;
    Graph graph = graph_;
    // From the last stage to the first, so that the numbers of the others stay what they are.
    std::vector<Patching> patchings = recipe.patchings;
    std::ranges::sort(patchings, std::greater{}, &Patching::first);
    for (const Patching& p : patchings) {
      auto patched = patch_rows(graph, p);
      if (!patched) return fail(std::move(patched.error()));
      if (!*patched) return std::nullopt;
      graph = std::move((*patched)->graph);
      made.copied_bytes += (*patched)->cost.copied_bytes;
    }
    if (recipe.fused) {
      auto pairs = separable_pairs(graph, kernel_policy(options));
      if (!pairs) return fail(std::move(pairs.error()));
      made.fused = pairs->size();
      fuse_pairs(graph, *pairs);
    }
    for (int i = 0; i < recipe.recomputations; ++i) {
      auto again = recompute_values(graph, Profile(graph).peak());
      if (!again) return std::nullopt;
      graph = std::move(again->graph);
      made.work += again->elements;
    }
    made.work += work_of(graph);
    effort_ += graph.nodes.size();
    PlanOptions bounded = options;
    bounded.quick = options.quick || graph.nodes.size() > kMaxSearched;
    auto planned = plan_model(std::move(graph), bounded);
    if (!planned) return fail(std::move(planned.error()));
    made.model = std::move(*planned);
    return made;
  }

  void accept(Plan plan, const std::string& what, const std::string& layer) {
    ReductionReport report;
    report.what = what;
    report.layer = layer;
    report.before_bytes = best_.model.activation_bytes;
    report.after_bytes = plan.model.activation_bytes;
    report.work_added = plan.work - best_.work;
    report.bytes_copied = plan.copied_bytes - best_.copied_bytes;
    result_.reductions.push_back(std::move(report));
    best_ = std::move(plan);
  }

  std::int64_t alive_at(std::int64_t step) const {
    std::int64_t sum = 0;
    for (const PlanBlock& block : best_.model.blocks)
      if (block.lower <= step && step < block.upper) sum += block.bytes;
    return sum;
  }

  /// Would the step with the peak fit without its scratch?
  bool scratch_decides() const {
    for (const PlannedStep& step : best_.model.steps)
      if (step.node == best_.model.peak_step)
        return step.scratch_bytes > 0 && alive_at(step.node) - step.scratch_bytes <= target_;
    return false;
  }

  /// Other kernels for the steps that exceed the target and have scratch.
  Result<bool> spare_scratch() {
    PlanOptions options = options_;
    std::string layer;
    for (const PlannedStep& step : best_.model.steps) {
      const std::string& name = best_.model.graph.node(step.node).name;
      if (step.scratch_bytes == 0 || alive_at(step.node) <= target_) continue;
      if (options.sparing.insert(name).second && layer.empty()) layer = name;
    }
    if (layer.empty()) return false;
    say("kernels with less scratch");
    auto made = plan(recipe_, options);
    if (!made) return fail(std::move(made.error()));
    const std::size_t count = options.sparing.size() - options_.sparing.size();
    if (!*made || (*made)->model.activation_bytes >= best_.model.activation_bytes) {
      result_.tried.push_back(fmt::format("kernels with less scratch for {} layers: no gain", count));
      return false;
    }
    options_ = std::move(options);
    accept(std::move(**made),
           fmt::format("kernels with less scratch for {} {}", count, count == 1 ? "layer" : "layers"), layer);
    return true;
  }

  /// Depthwise convolutions give their rows to the pointwise ones that read them. Adds no work, so that all do.
  Result<bool> fuse() {
    if (!can_patch_ || recipe_.fused) return false;
    say("depthwise and pointwise convolutions at once");
    Recipe recipe = recipe_;
    recipe.fused = true;
    auto made = plan(recipe, options_);
    if (!made) return fail(std::move(made.error()));
    if (!*made || (*made)->fused == 0 || (*made)->model.activation_bytes >= best_.model.activation_bytes) return false;
    recipe_ = std::move(recipe);
    const std::size_t pairs = (*made)->fused;
    const std::string layer = best_.model.graph.node(static_cast<NodeId>(best_.model.peak_step)).name;
    accept(std::move(**made),
           fmt::format("{} depthwise {} computed with the pointwise {} behind, a few rows at a time", pairs,
                       pairs == 1 ? "convolution" : "convolutions", pairs == 1 ? "one" : "ones"),
           layer);
    return true;
  }

  /// Cheap values that lie there at the peak are made again behind it.
  Result<bool> recompute() {
    if (!can_patch_ || graph_.nodes.empty()) return false;
    say("computing cheap values again");
    Recipe recipe = recipe_;
    ++recipe.recomputations;
    auto made = plan(recipe, options_);
    if (!made) return fail(std::move(made.error()));
    if (!*made || (*made)->model.activation_bytes >= best_.model.activation_bytes) return false;
    recipe_ = std::move(recipe);
    const std::string layer = best_.model.graph.node(static_cast<NodeId>(best_.model.peak_step)).name;
    accept(std::move(**made), "cheap values computed again behind the peak", layer);
    return true;
  }

  bool is_patched(NodeId n) const {
    return std::ranges::any_of(recipe_.patchings, [&](const Patching& p) { return p.first <= n && n <= p.last; });
  }

  /// The node whose values are most in the way: outside the stages that there are, or, where those fit, anywhere.
  NodeId node_in_the_way() const {
    NodeId worst = kNone;
    for (const bool all : {false, true}) {
      for (NodeId n = 0; n < static_cast<NodeId>(graph_.nodes.size()); ++n)
        if ((all || !is_patched(n)) && (worst == kNone || profile_.alive(n) > profile_.alive(worst))) worst = n;
      if (worst != kNone && profile_.alive(worst) > target_) return worst;
    }
    return worst;
  }

  static bool overlap(const Patching& a, const Patching& b) { return a.first <= b.last && b.first <= a.last; }

  /// The recipe with one patching more, which takes the place of those that it overlaps.
  Recipe with(const Patching& added) const {
    Recipe recipe = recipe_;
    std::erase_if(recipe.patchings, [&](const Patching& p) { return overlap(p, added); });
    recipe.patchings.insert(recipe.patchings.begin(), added);
    return recipe;
  }

  std::optional<Candidate> estimate(const Patching& patching) const {
    const auto stage = estimate_stage(graph_, patching);
    if (!stage) return std::nullopt;
    std::int64_t bytes = stage->all + profile_.across(patching.first, patching.last);
    const std::vector<Patching> all = with(patching).patchings;
    for (NodeId n = 0; n < static_cast<NodeId>(graph_.nodes.size()); ++n)
      if (std::ranges::none_of(all, [&](const Patching& p) { return p.first <= n && n <= p.last; }))
        bytes = std::max(bytes, profile_.alive(n));
    return Candidate{patching, bytes};
  }

  std::vector<Candidate> candidates_around(NodeId n) const {
    std::vector<Candidate> stages;
    NodeId low = n;
    while (low > 0 && n - low < kReach && has_row_rule(graph_.node(low - 1))) --low;
    NodeId high = n;
    while (high + 1 < static_cast<NodeId>(graph_.nodes.size()) && high - n < kReach &&
           has_row_rule(graph_.node(high + 1)))
      ++high;
    if (!has_row_rule(graph_.node(n))) return {};
    for (NodeId first = low; first <= n; ++first) {
      for (NodeId last = n; last <= high; ++last) {
        if (first == last) continue;
        std::optional<Candidate> best;
        for (const int bands : kProbes)
          if (const auto c = estimate({first, last, bands}); c && (!best || c->estimate < best->estimate)) best = c;
        if (!best) best = estimate({first, last, 2});
        if (best) stages.push_back(*best);
      }
    }
    std::ranges::stable_sort(stages, {}, &Candidate::estimate);
    if (stages.size() > kStages) stages.resize(kStages);
    std::vector<Candidate> all;
    for (const Candidate& stage : stages)
      for (const int bands : kBandCounts)
        for (const Halo halo : {Halo::kKeep, Halo::kRecompute})
          if (const auto c = estimate({stage.patching.first, stage.patching.last, bands, halo}); c) all.push_back(*c);
    return all;
  }

  /// Those that should fit with the fewest nodes, then those that should be smallest.
  std::vector<Patching> ranked(std::vector<Candidate> candidates) const {
    std::vector<Patching> chosen;
    const auto take = [&](const auto& wanted) {
      std::size_t taken = 0;
      for (const Candidate& c : candidates) {
        if (taken == kPlanned) break;
        if (!wanted(c) || std::ranges::count(chosen, c.patching) > 0 ||
            std::ranges::count(recipe_.patchings, c.patching) > 0)
          continue;
        chosen.push_back(c.patching);
        ++taken;
      }
    };
    std::ranges::stable_sort(
        candidates, {}, [](const Candidate& c) { return c.patching.bands * (c.patching.last - c.patching.first + 1); });
    take([&](const Candidate& c) { return c.estimate <= target_ && c.patching.halo == Halo::kKeep; });
    std::ranges::stable_sort(candidates, {}, &Candidate::estimate);
    take([](const Candidate& c) { return c.patching.halo == Halo::kKeep; });
    take([](const Candidate& c) { return c.patching.halo == Halo::kRecompute; });
    return chosen;
  }

  Result<bool> patch() {
    if (!can_patch_ || graph_.nodes.empty()) return false;
    const NodeId worst = node_in_the_way();
    std::optional<Plan> smallest;
    Patching chosen;
    std::size_t planned = 0;
    PlanOptions quick = options_;
    quick.quick = true;
    for (const Patching& p : ranked(candidates_around(worst))) {
      if (effort_ > kMaxEffort) break;
      say(describe(graph_, p));
      quick.hopeless = smallest ? smallest->model.activation_bytes : best_.model.activation_bytes;
      auto made = plan(with(p), quick);
      if (!made) return fail(std::move(made.error()));
      ++planned;
      if (!*made || static_cast<double>((*made)->work - work_) > kMaxAddedWork * static_cast<double>(work_)) continue;
      if (smallest && (*made)->model.activation_bytes >= smallest->model.activation_bytes) continue;
      smallest = std::move(**made);
      chosen = p;
      if (fits(*smallest)) break;
    }
    // What does not fit yet may do so with a search, which takes long for large graphs.
    if (smallest && !fits(*smallest) && smallest->model.graph.nodes.size() <= kMaxSearched) {
      auto made = plan(with(chosen), options_);
      if (!made) return fail(std::move(made.error()));
      smallest = std::move(*made);
    }
    if (!smallest || smallest->model.activation_bytes >= best_.model.activation_bytes) {
      result_.tried.push_back(
          fmt::format("{} splittings of the layers around '{}' into rows: no gain", planned, graph_.node(worst).name));
      return false;
    }
    accept(std::move(*smallest), describe(graph_, chosen), graph_.node(worst).name);
    recipe_ = with(chosen);
    return true;
  }

  const Graph& graph_;
  PlanOptions options_;
  std::int64_t target_;
  const std::function<void(const std::string&)>& progress_;
  Profile profile_;
  std::int64_t work_;
  bool can_patch_;
  Plan best_;
  std::size_t effort_ = 0;
  Recipe recipe_;  ///< of best_
  ReducedModel result_;
};

}  // namespace

Result<ReducedModel> reduce_activations(const Graph& graph, const PlanOptions& options, PlannedModel unreduced,
                                        std::int64_t target, const std::function<void(const std::string&)>& progress) {
  return Reducer(graph, options, std::move(unreduced), target, progress).run();
}

}  // namespace bantam::compiler
