// Lets convolutions of few channels, as first layers are, read images whose channels come first as they lie, instead of
// behind a transpose: planar_conv2d (ops/nn/planar_conv2d) copies the rows that it needs in any case, so that neither
// the transpose's time nor its result is needed. But a result may lie over a transposed image that it is computed from,
// and not over planes, which are read to their ends: whether a plan gets larger for it, the caller finds out. Results
// are the same to the bit: both operators have the kernel of ops/nn/conv2d/few_inputs.h. Host only; deterministic.
#pragma once

#include <optional>

#include "bantam/error.h"
#include "compiler/planned_model.h"
#include "graph/graph.h"

namespace bantam::compiler {

/// The graph with such convolutions. Nothing where none has that kernel behind a transpose that nothing else reads; for
/// graphs with control flow or several sizes, and for backends of parts of them. Requires a verified graph in execution
/// order. An Error is select_kernels'.
Result<std::optional<graph::Graph>> read_planes(const graph::Graph& graph, const PlanOptions& options);

}  // namespace bantam::compiler
