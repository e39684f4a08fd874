#include "compiler/overlaps.h"

#include <algorithm>

#include "ops/op.h"

namespace bantam::compiler {
namespace {

/// Bytes alive by node of the flat graph.
std::vector<std::int64_t> alive_bytes(const PlannedModel& model) {
  std::vector<std::int64_t> changes(model.graph.nodes.size() + 1, 0);
  for (const PlanBlock& block : model.blocks) {
    changes[static_cast<std::size_t>(block.lower)] += block.bytes;
    if (static_cast<std::size_t>(block.upper) < changes.size())
      changes[static_cast<std::size_t>(block.upper)] -= block.bytes;
  }
  for (std::size_t n = 1; n < changes.size(); ++n) changes[n] += changes[n - 1];
  return changes;
}

bool permits_overlap(const PlannedModel& model, const PlannedStep& step) {
  if (step.variant == nullptr) return false;
  const graph::Node& node = model.graph.node(step.node);
  const graph::OperandTables tables = graph::operand_tables(model.graph, node);
  return ops::footprint(*step.variant, tables.call(node), model.threads).lead_bytes != ops::Footprint::kNoOverlap;
}

}  // namespace

bool add_overlaps_at_peak(const PlannedModel& model, std::vector<bool>* overlaps) {
  overlaps->resize(model.graph.nodes.size(), false);
  const std::vector<std::int64_t> alive = alive_bytes(model);
  const std::int64_t peak = alive.empty() ? 0 : *std::ranges::max_element(alive);
  bool added = false;
  for (const PlannedStep& step : model.steps) {
    const auto n = static_cast<std::size_t>(step.node);
    if (alive[n] != peak || (*overlaps)[n] || !permits_overlap(model, step)) continue;
    (*overlaps)[n] = true;
    added = true;
  }
  return added;
}

}  // namespace bantam::compiler
