#include "package/control_flow.h"

namespace bantam::format {
namespace {

Status bad(const char* message, std::uint64_t found, std::uint64_t expected) {
  return failure(StatusCode::kInvalidPackage, message, static_cast<std::int64_t>(found),
                 static_cast<std::int64_t>(expected));
}

/// Walks the steps once with the branches and loops that it is inside of.
class FlowVerifier {
 public:
  FlowVerifier(const Model& model, const std::uint32_t* params) : model_(model), params_(params) {}

  Status run() {
    const std::uint32_t count = model_.steps()->size();
    for (std::uint32_t s = 0; s < count; ++s) {
      while (depth_ > 0 && top().end == s) --depth_;
      const Step& step = *model_.steps()->Get(s);
      runs_ += repeats();
      if (runs_ > kMaxStepRuns)
        return bad("the limits of the loops allow too many steps", runs_, kMaxStepRuns)
            .at(static_cast<std::int32_t>(s));
      if (step.kernel() == kControl)
        BANTAM_RETURN_IF_ERROR(enter(s, control_params(step, params_)).at(static_cast<std::int32_t>(s)));
    }
    return ok_status();
  }

 private:
  /// Steps up to `end` that a branch or loop consists of.
  struct Region {
    std::uint32_t end;
    std::uint32_t last;     ///< of a loop: its end step; of what a branch may skip: its jump; else nothing
    std::uint32_t first;    ///< of a loop: the step that its end goes back to
    std::uint32_t loops;    ///< around the steps inside
    std::uint64_t repeats;  ///< of the steps inside, at most
  };
  static constexpr std::uint32_t kNowhere = 0xffffffff;

  Region& top() { return regions_[depth_ - 1]; }
  std::uint32_t limit_of_targets() const { return depth_ > 0 ? regions_[depth_ - 1].end : model_.steps()->size(); }
  std::uint64_t repeats() const { return depth_ > 0 ? regions_[depth_ - 1].repeats : 1; }
  std::uint32_t loops() const { return depth_ > 0 ? regions_[depth_ - 1].loops : 0; }

  /// The parameters of the step before `target` if it is of that kind, else null.
  const ControlParams* before(std::uint32_t target, StepControl kind) const {
    const Step& step = *model_.steps()->Get(target - 1);
    if (step.kernel() != kControl) return nullptr;
    const ControlParams& p = control_params(step, params_);
    return p.kind == kind ? &p : nullptr;
  }

  Status push(const Region& region) {
    if (depth_ == kMaxControlDepth) return bad("too many branches and loops inside one another", depth_ + 1, depth_);
    regions_[depth_++] = region;
    return ok_status();
  }

  Status enter(std::uint32_t s, const ControlParams& p) {
    switch (p.kind) {
      case StepControl::kBranch: return enter_branch(s, p);
      case StepControl::kLoopBegin: return enter_loop(s, p);
      case StepControl::kJump: return leave_branch(s, p);
      case StepControl::kLoopEnd: return leave_loop(s, p);
      default: return bad("unknown control step", static_cast<std::uint64_t>(p.kind), 0);
    }
  }

  Status enter_branch(std::uint32_t s, const ControlParams& p) {
    if (p.target <= s || p.target > limit_of_targets()) return bad("a branch leaves what it is in", p.target, s + 1);
    const bool jumps = p.target - 1 > s && before(p.target, StepControl::kJump) != nullptr;
    return push({p.target, jumps ? p.target - 1 : kNowhere, 0, loops(), repeats()});
  }

  /// What the branch goes to begins here, if anything: it ends where the jump goes.
  Status leave_branch(std::uint32_t s, const ControlParams& p) {
    if (depth_ == 0 || top().last != s || top().first != 0) return bad("a jump ends no branch", s, 0);
    --depth_;
    if (p.target <= s || p.target > limit_of_targets()) return bad("a jump leaves what it is in", p.target, s + 1);
    return p.target == s + 1 ? ok_status() : push({p.target, kNowhere, 0, loops(), repeats()});
  }

  Status enter_loop(std::uint32_t s, const ControlParams& p) {
    if (p.target <= s + 1 || p.target > limit_of_targets()) return bad("a loop leaves what it is in", p.target, s + 2);
    const ControlParams* end = before(p.target, StepControl::kLoopEnd);
    if (end == nullptr || end->target != s + 1) return bad("a loop has no end of its own", p.target, s + 1);
    if (p.limit == 0 || p.limit > 0x7fffffff || end->limit != p.limit)
      return bad("a loop's limit", end->limit, p.limit);
    if (loops() == kMaxLoopDepth || p.depth != loops() || end->depth != p.depth)
      return bad("a loop's depth", end->depth, loops());
    // At most kMaxStepRuns before the product: no overflow.
    return push({p.target, p.target - 1, s + 1, loops() + 1, repeats() * p.limit});
  }

  Status leave_loop(std::uint32_t s, const ControlParams& p) {
    if (depth_ == 0 || top().last != s || top().first == 0 || top().first != p.target)
      return bad("the end of no loop", s, 0);
    return ok_status();
  }

  const Model& model_;
  const std::uint32_t* params_;
  Region regions_[kMaxControlDepth] = {};
  std::uint32_t depth_ = 0;
  std::uint64_t runs_ = 0;
};

}  // namespace

Status verify_control_flow(const Model& model, const std::uint32_t* params) noexcept {
  return FlowVerifier(model, params).run();
}

}  // namespace bantam::format
