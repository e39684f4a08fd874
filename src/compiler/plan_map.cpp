#include "compiler/plan_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "bantam/runtime.h"

namespace bantam::compiler {
namespace {

std::int64_t steps_of(const ModelReport& model) {
  std::int64_t end = 1;
  for (const StepReport& step : model.steps) end = std::max(end, step.index + 1);
  for (const PlanBlock& block : model.blocks) end = std::max(end, block.upper);
  return end;
}

/// Where a model's blocks of one memory are drawn.
struct Corner {
  std::uint32_t tier = 0;
  std::int64_t time = 0;
  std::int64_t offset = 0;
};

void append_model(const ModelReport& model, const std::string& prefix, const Corner& corner, plan::MapView& view) {
  for (const PlanBlock& block : model.blocks) {
    if (block.tier != corner.tier) continue;
    view.blocks.push_back({.name = prefix + block.name,
                           .kind = kind_name(block.kind),
                           .lower = corner.time + block.lower,
                           .upper = corner.time + block.upper,
                           .offset = corner.offset + block.offset,
                           .size = block.bytes,
                           .detail = block.detail});
  }
  const auto end = static_cast<std::size_t>(corner.time + steps_of(model));
  view.step_labels.resize(std::max(view.step_labels.size(), end));
  for (const StepReport& step : model.steps) {
    std::string& label = view.step_labels[static_cast<std::size_t>(corner.time + step.index)];
    if (!label.empty()) label += ", ";
    label += prefix + step.op + " " + step.name;
  }
}

}  // namespace

const char* kind_name(PlanBlock::Kind kind) {
  switch (kind) {
    case PlanBlock::Kind::kInput: return "input";
    case PlanBlock::Kind::kOutput: return "output";
    case PlanBlock::Kind::kScratch: return "scratch";
    case PlanBlock::Kind::kWeights: return "weights";
    case PlanBlock::Kind::kActivation: break;
  }
  return "activation";
}

std::string describe_bounds(const ModelReport& model) {
  const std::int64_t order = model.lower_bound_bytes - model.order_bound_bytes;
  const std::int64_t places = model.activation_bytes - model.added_scratch_bytes - model.lower_bound_bytes;
  const bool bounded = model.order_bound_bytes > 0 || model.lower_bound_bytes == 0;
  const std::string added =
      model.added_scratch_bytes > 0
          ? fmt::format("; {} bytes more for scratch, as that is faster", model.added_scratch_bytes)
          : "";
  return fmt::format("order: {}; places: {}{}",
                     !bounded     ? "no bound known"
                     : order <= 0 ? "optimal"
                                  : fmt::format("at most {} bytes above the best order", order),
                     places <= 0 ? "optimal" : fmt::format("{} bytes above the lower bound of this order", places),
                     added);
}

plan::MapView map_of_model(const ModelReport& model, std::uint32_t tier) {
  plan::MapView view;
  view.title = model.name;
  append_model(model, "", {.tier = tier}, view);
  for (const plan::MapBlock& block : view.blocks)
    view.total_bytes = std::max(view.total_bytes, block.offset + block.size);
  if (tier > 0) return view;
  view.note = describe_bounds(model);
  const bool one_memory = std::ranges::all_of(model.blocks, [](const PlanBlock& b) { return b.tier == 0; });
  if (one_memory) view.lower_bound = model.lower_bound_bytes;
  for (const PlanTrial& trial : model.trials)
    view.trials.push_back({trial.name, trial.activation_bytes, trial.lower_bound_bytes, trial.work, trial.kept});
  return view;
}

plan::MapView map_of_fleet(const Compiled& compiled) {
  plan::MapView view;
  const Requirements& need = compiled.requirements();
  view.title = "the whole arena";
  view.total_bytes = static_cast<std::int64_t>(need.arena_bytes);
  view.lower_bound = static_cast<std::int64_t>(compiled.lower_bound_bytes());
  std::map<std::pair<std::string, int>, std::int64_t> times;  // by lane and priority: what shares memory
  std::int64_t end = 1;
  for (const SessionReport& session : compiled.sessions()) {
    const ModelReport& model = compiled.models()[session.model];
    std::int64_t& time = times[{session.lane, session.priority}];
    const std::string lane = session.lane.empty() ? "" : fmt::format(" [{} {}]", session.lane, session.priority);
    append_model(model, session.name + lane + ": ",
                 {.time = time, .offset = static_cast<std::int64_t>(session.activation_offset)}, view);
    time += steps_of(model);
    end = std::max(end, time);
  }
  const auto links = static_cast<std::int64_t>(need.activation_bytes);
  const auto tables = static_cast<std::int64_t>(need.arena_bytes - need.table_bytes);
  const std::int64_t states = links + static_cast<std::int64_t>(need.link_bytes);
  const auto span = [&](const char* name, const char* kind, std::int64_t begin, std::int64_t top) {
    if (begin < top)
      view.blocks.push_back(
          {.name = name, .kind = kind, .lower = 0, .upper = end, .offset = begin, .size = top - begin, .detail = {}});
  };
  span("values between sessions", "links", links, states);
  span("states of all sessions", "state", states, tables);
  span("the runtime's structures", "tables", tables, view.total_bytes);
  return view;
}

std::vector<plan::MapView> maps_of(const Compiled& compiled) {
  std::vector<plan::MapView> views;
  if (compiled.memories().empty()) views.push_back(map_of_fleet(compiled));
  const auto tiers = static_cast<std::uint32_t>(std::max<std::size_t>(compiled.memories().size(), 1));
  for (const ModelReport& model : compiled.models()) {
    for (std::uint32_t tier = 0; tier < tiers; ++tier) {
      plan::MapView view = map_of_model(model, tier);
      if (view.blocks.empty() && tier > 0) continue;
      if (tiers > 1) view.title += " in " + compiled.memories()[tier].memory.name;
      views.push_back(std::move(view));
    }
  }
  return views;
}

}  // namespace bantam::compiler
