// From a graph in text form (graph/text.h) to a plan and a package, for tests. No passes run: what the test writes is
// what gets planned.
#pragma once

#include <string_view>

#include "bantam/error.h"
#include "compiler/planned_model.h"
#include "package/writer/package_data.h"

namespace bantam::compiler::testing {

/// The graph of `text`; a failure is reported to GoogleTest and gives an empty graph.
graph::Graph parse(std::string_view text);

struct TextPackage {
  PlannedModel planned;
  format::PackageBytes package;
};

/// One model and one session, both named as the graph.
Result<TextPackage> compile_graph(const graph::Graph& graph, const PlanOptions& options = {});
Result<TextPackage> compile_text(std::string_view text, const PlanOptions& options = {});

}  // namespace bantam::compiler::testing
