// Where folded constants came from: the builder folds a dequantisation of constant weights and the transpositions,
// reshapes and slices behind it, and what is said here lets passes go back to the integers.
#pragma once

#include <memory>

#include "graph/graph.h"

namespace bantam::graph {

/// The integers behind the only result of `node`, whose operands are all constant: of a dequantize, or of a transpose,
/// reshape or slice of a constant that has a source. Null for everything else, and where a reshape mixes slices with
/// different scales or a slice cuts the axis of the scales.
std::shared_ptr<const QuantizedSource> quantized_source_of(const Graph& graph, const Node& node);

/// The shape of a source's scales, for a constant of this shape.
TensorDesc scales_desc(const TensorDesc& constant, const QuantizedSource& source);

}  // namespace bantam::graph
