#include "compiler/stream_choice.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/channel_parts.h"
#include "compiler/weight_streams.h"

namespace bantam::compiler {
namespace {

/// Sets of streams that are tried for a model; every try is a plan of its blocks.
constexpr int kStreamTries = 10;
/// Plans of a model with a layer cut into parts, the most parts of one layer, and the largest model that is planned so.
constexpr int kCutTries = 16;
constexpr int kMostParts = 8;
constexpr std::size_t kMostCutNodes = 1000;
constexpr std::int64_t kCutSearchSteps = plan::kDefaultSearchSteps / 100;

class StreamChooser {
 public:
  explicit StreamChooser(const StreamSetting& setting) : setting_(setting) {}

  /// Tries sets of streams, each a part of the one before.
  Result<PlacedModel> choose(PlannedModel& model, PlacedModel start) const {
    std::vector<PlannedStream> tried = candidates(model);
    std::vector<PlannedStream> kept;
    PlacedModel best = std::move(start);
    for (int n = 0; n < kStreamTries && !tried.empty(); ++n) {
      set_streams(model, tried);
      auto placed = place(model);
      if (!placed) return fail(std::move(placed.error()));
      std::vector<PlannedStream> worth = worth_their_copies(model, placed->plan, tried);
      if (placed->plan.fits && placed->cost < best.cost) {
        best = std::move(*placed);
        kept = tried;
      }
      if (worth.size() == tried.size()) worth.resize(worth.size() / 2);
      tried = std::move(worth);
    }
    set_streams(model, kept);
    return best;
  }

  /// Cuts layers whose weights found no place in the fastest memory, or crowd others out, where that costs less.
  Result<void> cut_layers(PlannedModel& model, PlacedModel& best) const {
    if (model.graph.nodes.size() > kMostCutNodes) return {};
    int tries = kCutTries;
    for (bool found = true; found && tries > 0;) {
      const auto cut = cut_one(model, best, &tries);
      if (!cut) return fail(cut.error());
      found = *cut;
    }
    return {};
  }

 private:
  std::vector<PlannedStream> candidates(const PlannedModel& model) const {
    return find_streams(model, setting_.weights_cost, setting_.memories.front().cost);
  }

  Result<PlacedModel> place(const PlannedModel& model) const {
    PlacedModel result;
    result.accesses = count_accesses(model);
    auto plan = setting_.place(model, result.accesses.blocks);
    if (!plan) return fail(std::move(plan.error()));
    result.plan = std::move(*plan);
    result.cost =
        result.plan.cost + static_cast<double>(setting_.sessions * weight_bytes_read(model)) * setting_.weights_cost;
    return result;
  }

  /// Those of the model's streams, in the order of `streams`, that save where the plan puts them.
  std::vector<PlannedStream> worth_their_copies(const PlannedModel& model, const plan::TierPlan& plan,
                                                const std::vector<PlannedStream>& streams) const {
    std::vector<PlannedStream> worth;
    for (const PlannedStream& stream : streams) {
      const auto placed =
          std::ranges::find_if(model.streams, [&](const PlannedStream& s) { return same_operand(s, stream); });
      if (saving(stream, setting_.weights_cost, setting_.memories[tier_of(plan, *placed)].cost) > 0)
        worth.push_back(stream);
    }
    return worth;
  }

  /// True when a layer was cut.
  Result<bool> cut_one(PlannedModel& model, PlacedModel& best, int* tries) const {
    const graph::Graph whole = with_kernels(model);
    for (const graph::NodeId node : crowding_readers(model, best.plan)) {
      for (int parts = 2; parts <= kMostParts && *tries > 0; parts *= 2) {
        auto graph = in_channel_parts(whole, node, parts);
        if (!graph) break;
        --*tries;
        auto cut = try_graph(model, std::move(*graph), best);
        if (!cut || *cut) return cut;
      }
    }
    return false;
  }

  /// Nodes whose weights have no place in the fastest memory, or take one that others would like to have; those first
  /// that save most there.
  std::vector<graph::NodeId> crowding_readers(const PlannedModel& model, const plan::TierPlan& plan) const {
    const bool all_fast = lies_in_cheapest(plan);
    std::vector<graph::NodeId> nodes;
    for (const PlannedStream& wanted : candidates(model)) {
      const bool fast = std::ranges::any_of(
          model.streams, [&](const PlannedStream& s) { return same_operand(s, wanted) && tier_of(plan, s) == 0; });
      if (!fast || !all_fast) nodes.push_back(wanted.node);
    }
    return nodes;
  }

  /// True when the model costs less with this graph; it then has it.
  Result<bool> try_graph(PlannedModel& model, graph::Graph graph, PlacedModel& best) const {
    PlanOptions options = *setting_.options;
    options.choice = PlanChoice{};
    options.search_steps = kCutSearchSteps;
    auto planned = plan_model(std::move(graph), options);
    if (!planned) return fail(std::move(planned.error()).in(setting_.name));
    auto start = place(*planned);
    if (!start) return fail(std::move(start.error()));
    if (!start->plan.fits) start->cost = std::numeric_limits<double>::infinity();
    auto chosen = choose(*planned, std::move(*start));
    if (!chosen) return fail(std::move(chosen.error()));
    if (chosen->cost >= best.cost) return false;
    planned->copied_bytes = model.copied_bytes;
    best = std::move(*chosen);
    model = std::move(*planned);
    return true;
  }

  const StreamSetting& setting_;
};

}  // namespace

Result<PlacedModel> stream_weights(PlannedModel& model, const StreamSetting& setting, PlacedModel start) {
  const StreamChooser chooser(setting);
  auto best = chooser.choose(model, std::move(start));
  if (!best) return best;
  if (auto cut = chooser.cut_layers(model, *best); !cut) return fail(std::move(cut.error()));
  return best;
}

bool lies_in_cheapest(const plan::TierPlan& plan) {
  return std::all_of(plan.peaks.begin() + 1, plan.peaks.end(), [](std::int64_t peak) { return peak == 0; });
}

}  // namespace bantam::compiler
