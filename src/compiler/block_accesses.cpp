#include "compiler/block_accesses.h"

#include <algorithm>

#include "compiler/scratch.h"

namespace bantam::compiler {
namespace {

std::int64_t most_alive(const PlannedModel& model, std::uint32_t tier) {
  std::int64_t most = 0;
  for (const PlanBlock& at : model.blocks) {
    std::int64_t alive = 0;
    for (const PlanBlock& b : model.blocks)
      if (b.tier == tier && b.lower <= at.lower && at.lower < b.upper) alive += b.bytes;
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace

Accesses count_accesses(const PlannedModel& model) {
  Accesses result;
  result.blocks.assign(model.blocks.size(), 0);
  const auto count = [&](graph::ValueId id) {
    if (id == graph::kNone || model.graph.is_constant(id)) return;
    const auto v = static_cast<std::size_t>(id);
    const std::int64_t bytes = model.graph.value(id).desc.bytes();
    const std::uint32_t slot = model.places[v].slot;
    if (model.value_blocks[v] >= 0) {
      result.blocks[static_cast<std::size_t>(model.value_blocks[v])] += bytes;
    } else if (slot >= format::kFirstPort) {
      result.links += bytes;
    } else {
      result.state += bytes;
    }
  };
  for (const PlannedStep& step : model.steps) {
    const graph::Node& node = model.graph.node(step.node);
    for (const graph::ValueId id : node.inputs) count(id);
    for (const graph::ValueId id : node.outputs) count(id);
    if (step.scratch_block < 0) continue;
    const auto scratch = static_cast<std::size_t>(step.scratch_block);
    result.blocks[scratch] += 2 * model.blocks[scratch].bytes;
  }
  for (const PlannedStream& stream : model.streams)
    result.blocks[static_cast<std::size_t>(stream.block)] += (1 + stream.reads) * stream.bytes;
  for (const auto* ports : {&model.inputs, &model.outputs})
    for (const PlannedPort& port : *ports)
      if (!port.external) count(port.value);
  return result;
}

void move_blocks(PlannedModel& model, const plan::TierPlan& plan) {
  const auto old = [&](std::int32_t block) { return model.blocks[static_cast<std::size_t>(block)].offset; };
  const auto offset = [&](std::int32_t block) { return plan.offsets[static_cast<std::size_t>(block)]; };
  const auto tier = [&](std::int32_t block) { return plan.tiers[static_cast<std::size_t>(block)]; };
  const auto move_places = [&](std::vector<ValuePlace>& places) {
    for (std::size_t v = 0; v < places.size(); ++v) {
      const std::int32_t block = model.value_blocks[v];
      if (block < 0 || places[v].slot != format::kActivations) continue;  // a port's values lie in the port's slot
      places[v].offset += offset(block) - old(block);
      places[v].slot = activation_slot(model, tier(block));
    }
  };
  move_places(model.places);
  for (PlannedInstance& instance : model.instances) move_places(instance.places);
  for (auto* ports : {&model.inputs, &model.outputs})
    for (PlannedPort& port : *ports) {
      if (port.block < 0) continue;
      port.default_offset += offset(port.block) - old(port.block);
      port.tier = tier(port.block);
    }
  for (PlannedStep& step : model.steps) {
    // What it had beyond its needs is given anew below.
    const bool needed = step.scratch_block >= 0;
    step.scratch_bytes = needed ? model.blocks[static_cast<std::size_t>(step.scratch_block)].bytes : 0;
    step.scratch_offset = needed ? offset(step.scratch_block) : 0;
    step.scratch_tier = needed ? tier(step.scratch_block) : 0;
  }
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    model.blocks[b].offset = plan.offsets[b];
    model.blocks[b].tier = plan.tiers[b];
  }
  model.activation_bytes = plan.peaks.front();
  model.tier_bytes.assign(plan.peaks.begin() + 1, plan.peaks.end());
  grow_scratch(&model);
  model.lower_bound_bytes = 0;
  for (std::uint32_t t = 0; t < plan.peaks.size(); ++t) model.lower_bound_bytes += most_alive(model, t);
}

}  // namespace bantam::compiler
