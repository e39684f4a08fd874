#include "compiler/scratch.h"

#include <algorithm>
#include <utility>

#include "base/shape.h"
#include "ops/op.h"

namespace bantam::compiler {
namespace {

using Gap = std::pair<std::int64_t, std::int64_t>;  // [begin, end)

/// The largest stretch of a tier's activations, aligned as scratch is, in which nothing lives at `step`, `except`
/// apart.
Gap largest_gap(const PlannedModel& model, std::uint32_t tier, std::int64_t step, const PlanBlock* except) {
  const std::int64_t bytes = tier == 0 ? model.activation_bytes : model.tier_bytes[tier - 1];
  std::vector<Gap> taken;
  for (const PlanBlock& block : model.blocks)
    if (&block != except && block.tier == tier && block.lower <= step && step < block.upper)
      taken.emplace_back(block.offset, block.offset + block.bytes);
  std::ranges::sort(taken);
  taken.emplace_back(bytes, bytes);
  Gap largest{0, 0};
  std::int64_t end = 0;
  for (const Gap& block : taken) {
    const std::int64_t begin = align_up(end, ops::kAlignment);
    if (block.first - begin > largest.second - largest.first) largest = {begin, block.first};
    end = std::max(end, block.second);
  }
  return largest;
}

}  // namespace

void grow_scratch(const std::vector<std::int64_t>& useful, PlannedModel* model) {
  for (std::size_t s = 0; s < model->steps.size(); ++s) {
    PlannedStep& step = model->steps[s];
    PlanBlock* own = step.scratch_block >= 0 ? &model->blocks[static_cast<std::size_t>(step.scratch_block)] : nullptr;
    if (useful[s] <= step.scratch_bytes) continue;
    const Gap gap = largest_gap(*model, step.scratch_tier, step.node, own);
    const std::int64_t bytes = std::min(useful[s], gap.second - gap.first) /
                               static_cast<std::int64_t>(ops::kAlignment) * static_cast<std::int64_t>(ops::kAlignment);
    if (bytes <= step.scratch_bytes) continue;
    step.scratch_offset = gap.first;
    step.scratch_bytes = bytes;
    if (own != nullptr) own->offset = gap.first;
  }
}

}  // namespace bantam::compiler
