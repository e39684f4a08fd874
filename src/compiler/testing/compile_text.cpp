#include "compiler/testing/compile_text.h"

#include <gtest/gtest.h>

#include "compiler/emit.h"
#include "graph/text.h"

namespace bantam::compiler::testing {

graph::Graph parse(std::string_view text) {
  auto graph = graph::from_text(text);
  if (graph) return std::move(*graph);
  ADD_FAILURE() << graph.error().message;
  return {};
}

Result<TextPackage> compile_graph(const graph::Graph& graph, const PlanOptions& options) {
  auto planned = plan_model(graph, options);
  if (!planned) return fail(std::move(planned.error()));
  format::PackageData data;
  const auto weights = emit_model(*planned, graph.name, data);
  if (!weights) return fail(Error(weights.error()));
  data.fleet.emplace_back(graph.name, std::uint16_t{0});
  return TextPackage{std::move(*planned), format::write_package(data)};
}

Result<TextPackage> compile_text(std::string_view text, const PlanOptions& options) {
  const auto graph = graph::from_text(text);
  if (!graph) return fail(graph.error());
  return compile_graph(*graph, options);
}

}  // namespace bantam::compiler::testing
