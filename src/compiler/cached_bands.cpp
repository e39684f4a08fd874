#include "compiler/cached_bands.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/cost_model.h"
#include "compiler/patch_rows.h"
#include "compiler/row_rules.h"
#include "compiler/scratch.h"
#include "compiler/select.h"
#include "graph/control.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

/// Nodes of a run of large values that are looked at together, and of one stage: bounds the effort.
constexpr NodeId kMaxRun = 24;
constexpr NodeId kMaxStage = 10;
/// Nodes of all graphs whose kernels are chosen to predict a stage: bounds the time, some seconds.
constexpr std::size_t kMaxPredicted = 400'000;
/// What a band's rows may take of the caches: as much as is wished for, and as much as is still worth while.
constexpr double kWished = 0.5;
constexpr double kAllowed = 1;
/// Predictions are not exact: a stage must gain so much of the time that it takes.
constexpr double kLeastGain = 0.08;

/// Bands save most of the memory by themselves: the search for places may take this part of its usual effort.
constexpr std::int64_t kSearchShare = 10;

/// A stage that is faster in bands.
struct CachedStage {
  Patching patching;
  std::int64_t spared_bytes = 0;  ///< written to memory and fetched again without bands, per invoke
  std::int64_t copied_bytes = 0;  ///< rows that are kept for a later band, per invoke
  double gain_ns = 0;             ///< predicted, per invoke
};

class Bander {
 public:
  Bander(const Graph& graph, const PlanOptions& options)
      : graph_(graph), policy_(kernel_policy(options)), machine_(machine_of(options.target)), uses_(graph) {}

  /// By nodes of the graph, in their order.
  Result<std::vector<CachedStage>> stages() {
    std::vector<CachedStage> chosen;
    for (NodeId n = 0; n < static_cast<NodeId>(graph_.nodes.size()); ++n) {
      const NodeId last = end_of_run(n);
      if (last == n) continue;
      auto found = stages_of_run(n, last);
      if (!found) return found;
      chosen.insert(chosen.end(), found->begin(), found->end());
      n = last;
    }
    return chosen;
  }

 private:
  bool is_far(ValueId id) const {
    return id != kNone && !graph_.is_constant(id) &&
           static_cast<double>(graph_.value(id).desc.bytes()) > machine_.cache_bytes;
  }

  bool gives_far(NodeId n) const {
    const Node& node = graph_.node(n);
    return has_row_rule(node) && node.outputs.size() == 1 && is_far(node.outputs[0]);
  }

  /// The node that ends the run of large values that begins at `first`: it reads the last of them. `first` where there
  /// is none.
  NodeId end_of_run(NodeId first) const {
    NodeId last = first;
    while (last - first < kMaxRun && gives_far(last) && last + 1 < static_cast<NodeId>(graph_.nodes.size()) &&
           has_row_rule(graph_.node(last + 1)))
      ++last;
    return last;
  }

  /// The stages within a run that together gain most: for each node, what the nodes up to it gain at best.
  Result<std::vector<CachedStage>> stages_of_run(NodeId first, NodeId last) {
    struct Best {
      double gain_ns = 0;
      std::vector<CachedStage> stages;
    };
    std::vector<Best> best(static_cast<std::size_t>(last - first) + 2);  // of the nodes [first, first + i)
    for (NodeId end = first; end <= last; ++end) {
      Best& here = best[static_cast<std::size_t>(end - first) + 1];
      here = best[static_cast<std::size_t>(end - first)];
      for (NodeId begin = std::max(first, end - kMaxStage + 1); begin < end; ++begin) {
        auto stage = gain_of(begin, end);
        if (!stage) return fail(std::move(stage.error()));
        const Best& before = best[static_cast<std::size_t>(begin - first)];
        if (!*stage || before.gain_ns + (*stage)->gain_ns <= here.gain_ns) continue;
        here = {before.gain_ns + (*stage)->gain_ns, before.stages};
        here.stages.push_back(**stage);
      }
    }
    return best.back().stages;
  }

  /// Of large values that live within the stage only: those written and, by each reader, fetched.
  std::int64_t spared_bytes(NodeId first, NodeId last) const {
    std::int64_t bytes = 0;
    for (NodeId n = first; n < last; ++n) {
      const ValueId id = graph_.node(n).outputs[0];
      const auto is_inside = [&](const graph::Uses::Use& use) { return first <= use.node && use.node <= last; };
      const auto moves = [&](const graph::Uses::Use& use) { return !is_view(graph_.node(use.node)); };
      if (!is_far(id) || uses_.is_external(id) || !std::ranges::all_of(uses_.of(id), is_inside)) continue;
      bytes += graph_.value(id).desc.bytes() *
               ((is_view(graph_.node(n)) ? 0 : 1) + std::ranges::count_if(uses_.of(id), moves));
    }
    return bytes;
  }

  /// Do storage rules make a view of what the node gives, at least mostly?
  static bool is_view(const Node& node) { return node.op->output_view != nullptr || node.op->input_view != nullptr; }

  /// The fewest bands whose rows take no more of the caches than wished for, or the most where none do.
  std::optional<Patching> banded(NodeId first, NodeId last) const {
    std::optional<Patching> most;
    for (const int bands : kBandCounts) {
      const Patching patching{first, last, bands, Halo::kKeep};
      const auto estimate = estimate_stage(graph_, patching);
      if (!estimate) break;
      const auto inner = static_cast<double>(estimate->inner);
      if (inner <= kAllowed * machine_.cache_bytes) most = patching;
      if (inner <= kWished * machine_.cache_bytes) break;
    }
    return most;
  }

  /// Nothing where the nodes are no stage that gains.
  Result<std::optional<CachedStage>> gain_of(NodeId first, NodeId last) {
    CachedStage stage;
    stage.spared_bytes = spared_bytes(first, last);
    if (stage.spared_bytes == 0 || effort_ > kMaxPredicted) return std::nullopt;
    const auto patching = banded(first, last);
    if (!patching) return std::nullopt;
    stage.patching = *patching;
    const auto patched = patch_rows(graph_, *patching);
    if (!patched) return fail(patched.error());
    if (!*patched) return std::nullopt;
    const auto whole_ns = time_of(graph_, first, last);
    if (!whole_ns) return fail(whole_ns.error());
    const auto banded_ns = time_of((*patched)->graph, (*patched)->first, (*patched)->last);
    if (!banded_ns) return fail(banded_ns.error());
    stage.copied_bytes = (*patched)->cost.copied_bytes;
    const double fetched_ns = static_cast<double>(stage.spared_bytes) / machine_.fetched_bytes;
    stage.gain_ns = *whole_ns + fetched_ns - *banded_ns;
    if (stage.gain_ns < kLeastGain * (*whole_ns + fetched_ns)) return std::nullopt;
    return stage;
  }

  /// Predicted for the nodes [first, last], with every value in the caches.
  Result<double> time_of(const Graph& graph, NodeId first, NodeId last) {
    effort_ += graph.nodes.size();
    const auto selected = select_kernels(graph, policy_);
    if (!selected) return fail(selected.error());
    double sum = 0;
    for (NodeId n = first; n <= last; ++n) {
      const Node& node = graph.node(n);
      const ops::KernelVariant* variant = (*selected)[static_cast<std::size_t>(n)].variant;
      if (variant == nullptr || is_view(node)) continue;
      const graph::OperandTables tables = graph::operand_tables(graph, node);
      sum += predicted_ns(*node.op, *variant, tables.call(node), machine_);
    }
    return sum;
  }

  const Graph& graph_;
  KernelPolicy policy_;
  Machine machine_;
  graph::Uses uses_;
  std::size_t effort_ = 0;
};

/// The graph with these stages in bands.
Result<Graph> split(const Graph& graph, const std::vector<CachedStage>& stages) {
  Graph banded = graph;
  // From the last stage to the first, so that the numbers of the others stay what they are.
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    auto patched = patch_rows(banded, stage->patching);
    if (!patched) return fail(std::move(patched.error()));
    if (*patched) banded = std::move((*patched)->graph);
  }
  return banded;
}

ReductionReport report(const Graph& graph, const CachedStage& stage) {
  ReductionReport report;
  report.what = describe(graph, stage.patching);
  report.layer = graph.node(stage.patching.first).name;
  report.bytes_copied = stage.copied_bytes;
  report.bytes_spared = stage.spared_bytes;
  return report;
}

PlanOptions options_for_bands(PlanOptions options, const Graph& banded) {
  options.quick = options.quick || banded.nodes.size() > kMaxSearched;
  options.search_steps /= kSearchShare;
  return options;
}

/// What the steps of a plan for one thread lose by less scratch than is useful.
double lost_ns(const PlannedModel& planned, const Machine& machine) {
  double sum = 0;
  for (const PlannedStep& step : planned.steps) {
    if (step.variant == nullptr) continue;
    const Node& node = planned.graph.node(step.node);
    const graph::OperandTables tables = graph::operand_tables(planned.graph, node);
    sum += short_scratch_ns(*node.op, *step.variant, tables.call(node), step.scratch_bytes, machine);
  }
  return sum;
}

/// The graph's plan for one thread; `planned` is the plan with these options.
Result<PlannedModel> for_one_thread(const Graph& graph, PlanOptions options, const PlannedModel& planned) {
  if (options.threads == 1) return planned;
  options.threads = 1;
  return plan_model(graph, options);
}

}  // namespace

Result<std::optional<ReducedModel>> plan_in_bands(const Graph& graph, const PlanOptions& options,
                                                  const PlannedModel& whole, std::int64_t most_bytes) {
  if (!has_one_size(graph, options) || graph::has_control(graph) || options.backend != Backend::kFast ||
      !options.backends.empty() || machine_of(options.target).cache_bytes <= 0)
    return std::nullopt;
  const auto stages = Bander(graph, options).stages();
  if (!stages) return fail(stages.error());
  if (stages->empty()) return std::nullopt;
  auto banded = split(graph, *stages);
  if (!banded) return fail(std::move(banded.error()));
  const PlanOptions bounded = options_for_bands(options, *banded);
  auto planned = plan_model(*banded, bounded);
  if (!planned) return fail(std::move(planned.error()));
  // Decided for one thread: results must not depend on the number of threads, though scratch does.
  const auto before = for_one_thread(graph, options, whole);
  if (!before) return fail(before.error());
  auto after = for_one_thread(*banded, bounded, *planned);
  if (!after) return fail(after.error());
  if (after->activation_bytes > before->activation_bytes) return std::nullopt;
  const Machine machine = machine_of(options.target);
  const auto gain_ns = [&] {
    double gain = lost_ns(*before, machine) - lost_ns(*after, machine);
    for (const CachedStage& stage : *stages) gain += stage.gain_ns;
    return gain;
  };
  if (gain_ns() <= 0) {
    grow_scratch(&*after, std::min(before->activation_bytes, most_bytes));
    if (gain_ns() <= 0) return std::nullopt;
    grow_scratch(&*planned, std::min(whole.activation_bytes, most_bytes));
  }
  ReducedModel result;
  for (const CachedStage& stage : *stages) {
    result.reductions.push_back(report(graph, stage));
    result.reductions.back().before_bytes = whole.activation_bytes;
    result.reductions.back().after_bytes = planned->activation_bytes;
  }
  result.planned = std::move(*planned);
  return result;
}

}  // namespace bantam::compiler
