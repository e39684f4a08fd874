#include "compiler/frontier.h"

#include <algorithm>
#include <utility>

namespace bantam::compiler {
namespace {

/// Each budget is so much of the arena found before it: a dozen points for a tenth of the memory.
constexpr double kStep = 0.85;

FrontierPoint point_of(const Compiled& compiled) {
  FrontierPoint point;
  point.arena_bytes = compiled.requirements().arena_bytes;
  for (const ModelReport& model : compiled.models()) {
    for (const StepReport& step : model.steps) point.work += step.work;
    for (const ReductionReport& r : model.reductions) {
      point.bytes_copied += r.bytes_copied;
      point.how += (point.how.empty() ? "" : "; ") + model.name + ": " + r.what;
    }
  }
  return point;
}

/// Does `a` cost no more than `b` in any way?
bool no_worse(const FrontierPoint& a, const FrontierPoint& b) {
  return a.arena_bytes <= b.arena_bytes && a.work <= b.work && a.bytes_copied <= b.bytes_copied;
}

}  // namespace

Result<std::vector<FrontierPoint>> frontier(const FleetSpec& fleet, const CompileOptions& options) {
  std::vector<FrontierPoint> points;
  FleetSpec spec = fleet;
  CompileOptions best_effort = options;
  best_effort.best_effort = true;
  spec.budget.reset();
  for (;;) {
    const auto compiled = compile(spec, best_effort);
    if (!compiled) return fail(compiled.error());
    FrontierPoint point = point_of(*compiled);
    const bool smaller = points.empty() || point.arena_bytes < points.back().arena_bytes;
    if (smaller) {
      // A reduction that adds neither work nor copies still may cost time, so the fastest plan, the first, stays.
      if (!points.empty())
        points.erase(std::remove_if(points.begin() + 1, points.end(),
                                    [&](const FrontierPoint& p) { return no_worse(point, p); }),
                     points.end());
      points.push_back(std::move(point));
    }
    // What does not meet its budget is the smallest that there is.
    if (!smaller || (spec.budget && compiled->requirements().arena_bytes > *spec.budget)) return points;
    spec.budget = static_cast<std::uint64_t>(kStep * static_cast<double>(compiled->requirements().arena_bytes));
  }
}

}  // namespace bantam::compiler
