// From a ModelSpec to the graph, or graphs, that are planned: import, passes, and the sizes of dimensions with bounds.
// Called once per model of a fleet; errors name the file.
#pragma once

#include <vector>

#include "bantam/compiler.h"
#include "compiler/sized_model.h"
#include "graph/graph.h"
#include "import/import.h"

namespace bantam::compiler {

/// A model ready to be planned: its graph at the bounds, and at other sizes where it has dimensions.
struct LoadedModel {
  graph::Graph graph;
  std::vector<Dimension> dimensions;
  std::vector<SizedGraph> instances;
};

/// What the importer is told: with these sizes of the dimensions that have bounds, in the order of their names, or at
/// the bounds when none are given.
Result<import::Options> import_options(const ModelSpec& spec, const Sizes& sizes = {});

Result<LoadedModel> load_model(const ModelSpec& spec, const CompileOptions& options);

}  // namespace bantam::compiler
