// Steps that jump: what they say, and the check that a model with them ends. Freestanding.
//
// A step whose kernel is format::kControl calls none; its parameters are ControlParams. Steps run one after another
// except:
//   branch      operand: condition. Goes to `target` when it is false, else on. The step before `target` may be a jump.
//   jump        ends what a branch skips: goes to `target`, the end of what runs otherwise.
//   loop begin  operands: trip count (i64) or absent, condition or absent; result: the iteration (i64), set to 0.
//               Goes to `target`, behind the loop's end, when there is nothing to do.
//   loop end    the same operands; increments the iteration. Goes back to `target`, behind the loop's begin, while the
//               iteration is below the trip count and the condition holds.
// Branches and loops lie within one another or apart. An iteration is counted by the runtime, not in memory that steps
// could write, and a loop that would run more than `limit` times fails the invoke, so every invoke ends.
#pragma once

#include <cstdint>

#include "package/tables.h"

namespace bantam::format {

/// Step.kernel of a step without a kernel.
inline constexpr std::uint16_t kControl = 0xffff;

enum class StepControl : std::uint32_t { kBranch = 0, kJump, kLoopBegin, kLoopEnd, kCount };

/// Four words of Model.params.
struct ControlParams {
  StepControl kind;
  std::uint32_t target;  ///< a step; the number of steps for the end of the model
  std::uint32_t limit;   ///< of a loop: most iterations, at least 1
  std::uint32_t depth;   ///< of a loop: how many loops there are around it
};
inline constexpr std::uint32_t kControlWords = sizeof(ControlParams) / 4;

/// Most loops, and most branches and loops together, inside one another.
inline constexpr std::uint32_t kMaxLoopDepth = 8;
inline constexpr std::uint32_t kMaxControlDepth = 16;

/// Most steps that an invoke may run, by the limits of its loops.
inline constexpr std::uint64_t kMaxStepRuns = std::uint64_t{1} << 28U;

/// Operands of a control step: inputs, then outputs.
constexpr std::uint32_t control_inputs(StepControl kind) {
  return kind == StepControl::kJump ? 0U : kind == StepControl::kBranch ? 1U : 2U;
}
constexpr std::uint32_t control_outputs(StepControl kind) {
  return kind == StepControl::kLoopBegin || kind == StepControl::kLoopEnd ? 1U : 0U;
}

/// Requires parameters within `params`.
inline const ControlParams& control_params(const Step& step, const std::uint32_t* params) {
  return *reinterpret_cast<const ControlParams*>(params + step.first_param());
}

/// Checks that all jumps lie within one another and that limits bound the work. Requires that every control step's
/// parameters lie within `params`. Takes time in proportion to the steps.
Status verify_control_flow(const Model& model, const std::uint32_t* params) noexcept;

}  // namespace bantam::format
