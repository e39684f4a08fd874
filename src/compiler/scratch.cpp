#include "compiler/scratch.h"

#include <algorithm>
#include <utility>

#include "base/shape.h"
#include "ops/op.h"

namespace bantam::compiler {
namespace {

using Gap = std::pair<std::int64_t, std::int64_t>;  // [begin, end)

/// The largest stretch of a tier of so many bytes, aligned as scratch is, in which nothing lives at `step`, `except`
/// apart.
Gap largest_gap(const PlannedModel& model, std::uint32_t tier, std::int64_t bytes, std::int64_t step,
                const PlanBlock* except) {
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

void grow_scratch(PlannedModel* model, std::int64_t room) {
  constexpr auto kBytes = static_cast<std::int64_t>(ops::kAlignment);
  const std::int64_t first_tier = std::max(room, model->activation_bytes);
  for (std::size_t s = 0; s < model->steps.size(); ++s) {
    PlannedStep& step = model->steps[s];
    const bool is_first = step.scratch_tier == 0;
    PlanBlock* own = step.scratch_block >= 0 ? &model->blocks[static_cast<std::size_t>(step.scratch_block)] : nullptr;
    if (model->useful_scratch[s] <= step.scratch_bytes) continue;
    const std::int64_t tier = is_first ? first_tier : model->tier_bytes[step.scratch_tier - 1];
    const Gap gap = largest_gap(*model, step.scratch_tier, tier, step.node, own);
    const std::int64_t bytes = std::min(model->useful_scratch[s], gap.second - gap.first) / kBytes * kBytes;
    if (bytes <= step.scratch_bytes) continue;
    step.scratch_offset = gap.first;
    step.scratch_bytes = bytes;
    if (own != nullptr) own->offset = gap.first;
    const std::int64_t more = is_first ? std::max<std::int64_t>(gap.first + bytes - model->activation_bytes, 0) : 0;
    if (more == 0) continue;
    model->activation_bytes += more;
    model->added_scratch_bytes += more;
    model->scratch_bytes = std::max(model->scratch_bytes, bytes);
  }
}

}  // namespace bantam::compiler
