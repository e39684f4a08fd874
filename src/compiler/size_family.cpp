#include "compiler/size_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace bantam::compiler {
namespace {

std::string name_of(const ModelSpec& model) { return model.name.empty() ? model.path.stem().string() : model.name; }

tl::unexpected<Error> bad_sizes(const ModelSpec& model, const std::string& dimension, const std::string& what) {
  return fail(StatusCode::kInvalidArgument,
              fmt::format("model '{}', sizes of '{}': {}", name_of(model), dimension, what),
              "name different positive sizes, such as --sizes T=160,320,640");
}

Result<void> check(const ModelSpec& model) {
  std::size_t plans = 1;
  for (const auto& [dimension, sizes] : model.sizes) {
    if (sizes.empty()) return bad_sizes(model, dimension, "there are none");
    for (const std::int64_t size : sizes) {
      if (size < 1 || size > std::numeric_limits<std::int32_t>::max())
        return bad_sizes(model, dimension, fmt::format("{} is not a size", size));
      if (std::ranges::count(sizes, size) > 1)
        return bad_sizes(model, dimension, fmt::format("{} stands there twice", size));
    }
    if (model.dims.contains(dimension) || model.bounds.contains(dimension) || model.formulas.contains(dimension))
      return bad_sizes(model, dimension, "the dimension has a value, a bound or a formula as well");
    plans *= sizes.size();
    if (plans > kMaxFamily) return bad_sizes(model, dimension, fmt::format("more than {} plans", kMaxFamily));
  }
  return {};
}

/// The model at every combination of its sizes.
std::vector<ModelSpec> members(const ModelSpec& model) {
  std::vector<ModelSpec> result = {model};
  result.front().name = name_of(model);
  result.front().sizes.clear();
  const char* separator = "@";
  for (const auto& [dimension, sizes] : model.sizes) {
    std::vector<ModelSpec> next;
    for (const ModelSpec& member : result)
      for (const std::int64_t size : sizes) {
        next.push_back(member);
        next.back().dims[dimension] = size;
        next.back().name += fmt::format("{}{}:{}", separator, dimension, size);
      }
    result = std::move(next);
    separator = ",";
  }
  return result;
}

}  // namespace

Result<ExpandedFleet> expand_sizes(const FleetSpec& fleet) {
  ExpandedFleet result{fleet, {}};
  result.spec.models.clear();
  for (std::size_t m = 0; m < fleet.models.size(); ++m) {
    const ModelSpec& model = fleet.models[m];
    if (auto good = check(model); !good) return fail(std::move(good.error()));
    std::string names;
    for (ModelSpec& member : members(model)) {
      names += (names.empty() ? "" : ", ") + member.name;
      // A model that is no family stays as it was, unnamed if it was.
      result.spec.models.push_back(model.sizes.empty() ? model : std::move(member));
      result.origins.push_back(m);
    }
    if (model.sizes.empty()) continue;
    for (const SessionSpec& session : fleet.sessions)
      if (session.model == name_of(model))
        return fail(
            StatusCode::kInvalidArgument,
            fmt::format("session '{}' does not say which size of model '{}' it has", session.name, name_of(model)),
            "use one of " + names);
  }
  return result;
}

}  // namespace bantam::compiler
