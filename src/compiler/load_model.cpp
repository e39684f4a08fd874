#include "compiler/load_model.h"

#include <fmt/format.h>

#include <utility>

#include "base/shape.h"
#include "compiler/branches.h"
#include "compiler/legalize.h"
#include "compiler/size_formula.h"
#include "graph/control.h"
#include "package/size_patches.h"
#include "passes/passes.h"

namespace bantam::compiler {
namespace {

Result<void> check_bounds(const ModelSpec& spec) {
  if (spec.bounds.size() > format::kMaxDimensions)
    return fail(StatusCode::kUnsupported,
                fmt::format("{} dimensions have a bound, at most {} may", spec.bounds.size(), format::kMaxDimensions),
                "fix some of them with --dim");
  for (const auto& [name, formula] : spec.formulas)
    if (spec.dims.contains(name) || spec.bounds.contains(name))
      return fail(StatusCode::kInvalidArgument, fmt::format("dimension '{}' has both a formula and a size", name),
                  "give one of the two");
  for (const auto& [name, bound] : spec.bounds) {
    if (bound < 1 || bound > kMaxElements)
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("the bound {} of dimension '{}' is not a size", bound, name),
                  fmt::format("give the largest size that '{}' will have", name));
    if (spec.dims.contains(name))
      return fail(StatusCode::kInvalidArgument, fmt::format("dimension '{}' has both a size and a bound", name),
                  "give one of the two");
  }
  return {};
}

/// Sizes that the model computes are dimensions too, with the bounds that the import found.
Result<void> add_measured(ModelSpec& spec, const graph::Graph& at_bounds) {
  for (const graph::MeasuredSize& size : at_bounds.measured) {
    if (spec.formulas.contains(size.name))
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("dimension '{}' has a formula, but the model computes its size", size.name),
                  "remove the formula, and give a bound");
    spec.bounds.try_emplace(size.name, size.bound);
  }
  return check_bounds(spec);
}

}  // namespace

Result<import::Options> import_options(const ModelSpec& spec, const Sizes& sizes) {
  import::Options options{spec.dims, spec.shapes, spec.values, spec.counts, spec.states, spec.bounds, spec.iterations};
  std::size_t d = 0;
  for (const auto& [name, bound] : spec.bounds) options.dims[name] = d < sizes.size() ? sizes[d++] : bound;
  const std::map<std::string, std::int64_t> given = options.dims;
  for (const auto& [name, formula] : spec.formulas) {
    const auto size = evaluate_formula(formula, given);
    if (!size) return fail(Error(size.error()).in(fmt::format("dimension '{}'", name)));
    options.dims[name] = *size;
  }
  return options;
}

Result<LoadedModel> load_model(const ModelSpec& given, const CompileOptions& options) {
  ModelSpec spec = given;
  auto source = import::open_source(spec.path);
  if (!source) return fail(std::move(source.error()));
  const auto run_passes = [&](graph::Graph& graph, bool any_size) -> Result<void> {
    if (auto chosen = choose_outputs(graph, spec.outputs, spec.keep); !chosen)
      return fail(std::move(chosen.error()).in(spec.path.string()));
    auto passed = passes::run_passes(graph, {.stop_after = options.stop_after, .any_size = any_size});
    if (!passed) return fail(std::move(passed.error()).in(spec.path.string()));
    return {};
  };
  if (auto sound = check_bounds(spec); !sound) return fail(std::move(sound.error()).in(spec.path.string()));
  const auto import_at = [&](const Sizes& sizes) -> Result<graph::Graph> {
    const auto at = import_options(spec, sizes);
    if (!at) return fail(Error(at.error()).in(spec.path.string()));
    return import::import_model(*source, *at);
  };
  auto largest = import_at({});
  if (!largest) return fail(std::move(largest.error()));
  if (auto sound = add_measured(spec, *largest); !sound) return fail(std::move(sound.error()).in(spec.path.string()));
  if (!spec.bounds.empty() && graph::has_control(*largest))
    return fail(StatusCode::kUnsupported,
                fmt::format("{}: control flow and sizes that change ('{}') do not go together yet", spec.path.string(),
                            spec.bounds.begin()->first),
                "fix the dimension with --dim");
  if (spec.bounds.empty()) {
    if (auto passed = run_passes(*largest, false); !passed) return fail(std::move(passed.error()));
    return LoadedModel{std::move(*largest), {}, {}};
  }
  const auto prepare = [&](graph::Graph& graph, bool any_size) -> Result<void> {
    if (auto passed = run_passes(graph, any_size); !passed) return passed;
    if (auto legal = legalize(graph); !legal) return legal;
    graph::compact(graph);
    return {};
  };
  auto sized = size_model(spec.bounds, import_at, prepare);
  if (!sized) return fail(std::move(sized.error()).in(spec.path.string()));
  graph::Graph at_bounds = sized->instances.front().graph;
  return LoadedModel{std::move(at_bounds), std::move(sized->dimensions), std::move(sized->instances)};
}

}  // namespace bantam::compiler
