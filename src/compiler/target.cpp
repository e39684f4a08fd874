#include "bantam/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace bantam {
namespace {

/// Kernels in plain C++, which every target has: the references, and those written for small cores.
constexpr std::string_view kPortable[] = {"portable", "ref"};

constexpr Target kTargets[] = {
    {},
    {"cortex-m4", "Arm Cortex-M4 with single-precision floating point", 4, kPortable},
    {"cortex-m55", "Arm Cortex-M55", 4, kPortable},
};

}  // namespace

bool Target::has_kernel(std::string_view variant) const noexcept {
  if (instruction_sets.empty()) return true;
  const std::size_t mark = variant.rfind("__");
  return mark != std::string_view::npos &&
         std::ranges::find(instruction_sets, variant.substr(mark + 2)) != instruction_sets.end();
}

std::span<const Target> all_targets() noexcept { return kTargets; }

Result<Target> find_target(std::string_view name) {
  std::string names;
  for (const Target& target : kTargets) {
    if (target.name == name) return target;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", target.name);
  }
  return fail(StatusCode::kNotFound, fmt::format("there is no target '{}'; targets are {}", name, names),
              "use one of the names listed");
}

}  // namespace bantam
