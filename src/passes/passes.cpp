#include "passes/passes.h"

#include <fmt/format.h>

#include "passes/list.h"

namespace bantam::passes {
namespace {

constexpr Pass kPasses[] = {
    {"dead-code", "removes nodes whose results nobody reads", remove_dead_code},
};

std::string pass_names() {
  std::string names;
  for (const Pass& pass : kPasses) names += (names.empty() ? "" : ", ") + std::string(pass.name);
  return names;
}

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

Result<void> run_passes(graph::Graph& graph, const PassOptions& options) {
  const auto known = [&] {
    for (const Pass& pass : kPasses)
      if (pass.name == options.stop_after) return true;
    return options.stop_after.empty();
  };
  if (!known())
    return fail(StatusCode::kInvalidArgument, fmt::format("there is no pass '{}'", options.stop_after),
                "use one of: " + pass_names());
  for (const Pass& pass : kPasses) {
    auto changed = pass.run(graph);
    if (!changed) return fail(std::move(changed.error()).in(fmt::format("pass '{}'", pass.name)));
    if (options.verify)
      if (auto sound = graph::verify(graph); !sound)
        return fail(std::move(sound.error()).in(fmt::format("pass '{}' broke the graph", pass.name)));
    if (pass.name == options.stop_after) break;
  }
  return {};
}

}  // namespace bantam::passes
