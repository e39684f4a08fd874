// Which weights of a model are streamed, given the room that it has in each memory.
//
// Called by the planner of memories (compiler/memories.h), which knows how blocks are placed. Sets of streams
// (compiler/weight_streams.h) are tried, then layers in parts (compiler/channel_parts.h); what costs least stays. Host
// only; no shared state.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/block_accesses.h"
#include "compiler/planned_model.h"

namespace bantam::compiler {

/// A model's blocks in the memories, and what an invoke of its sessions pays, the package's part included.
struct PlacedModel {
  plan::TierPlan plan;
  Accesses accesses;
  double cost = 0;
};

struct StreamSetting {
  std::string name;              ///< of the model
  const PlanOptions* options{};  ///< with which it was planned
  std::int64_t sessions = 1;
  double weights_cost = 0;  ///< of a byte of the package
  std::span<const MemorySpec> memories;
  /// Places a model's blocks, which are accessed so often; the cost is that of all its sessions.
  std::function<Result<plan::TierPlan>(const PlannedModel&, const std::vector<std::int64_t>& accessed)> place;
};

/// Gives the model the streams with which it costs least, none if they save nothing. `start` is how it is placed
/// without.
Result<PlacedModel> stream_weights(PlannedModel& model, const StreamSetting& setting, PlacedModel start);

inline std::size_t tier_of(const plan::TierPlan& plan, const PlannedStream& stream) {
  return plan.tiers[static_cast<std::size_t>(stream.block)];
}

/// Is nothing in the memories behind the first?
bool lies_in_cheapest(const plan::TierPlan& plan);

}  // namespace bantam::compiler
