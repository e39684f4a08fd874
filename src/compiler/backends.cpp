#include "compiler/backends.h"

#include <algorithm>

namespace bantam::compiler {
namespace {

bool is_plain(const ops::KernelVariant& variant) { return variant.name.ends_with("__ref"); }

constexpr BackendDef kBackends[] = {
    {Backend::kFast, "fast", "kernels for this processor's instructions",
     [](const ops::KernelVariant& variant) { return !is_plain(variant); }},
    {Backend::kReference, "reference", "plain kernels, the definition of each operator", is_plain},
};

}  // namespace

std::span<const BackendDef> all_backends() { return kBackends; }

const BackendDef& backend_def(Backend id) { return *std::ranges::find(kBackends, id, &BackendDef::id); }

std::optional<Backend> backend_from_name(std::string_view name) {
  const auto* it = std::ranges::find(kBackends, name, &BackendDef::name);
  return it == std::end(kBackends) ? std::nullopt : std::optional(it->id);
}

std::string backend_names() {
  std::string names;
  for (const BackendDef& backend : kBackends) names += (names.empty() ? "" : ", ") + std::string(backend.name);
  return names;
}

}  // namespace bantam::compiler
