// The passes, one per file of the same name. See Pass in passes.h for what all of them promise.
#pragma once

#include "bantam/error.h"
#include "graph/graph.h"

namespace bantam::passes {

Result<bool> remove_dead_code(graph::Graph& graph);
Result<bool> name_turned(graph::Graph& graph);
Result<bool> fold_constants(graph::Graph& graph);
Result<bool> fold_constants_at_any_size(graph::Graph& graph);
Result<bool> remove_identities(graph::Graph& graph);
Result<bool> remove_identities_at_any_size(graph::Graph& graph);
Result<bool> merge_slices(graph::Graph& graph);
Result<bool> merge_slices_at_any_size(graph::Graph& graph);
Result<bool> group_norms(graph::Graph& graph);
Result<bool> recognize_functions(graph::Graph& graph);
Result<bool> fuse_recurrent_cells(graph::Graph& graph);
Result<bool> integer_arithmetic(graph::Graph& graph);
Result<bool> fuse_attention(graph::Graph& graph);
Result<bool> channels_last(graph::Graph& graph);
Result<bool> sink_reshapes(graph::Graph& graph);
Result<bool> sink_reshapes_at_any_size(graph::Graph& graph);
Result<bool> sink_lookups(graph::Graph& graph);
Result<bool> scale_integer_sums(graph::Graph& graph);
Result<bool> fuse_affine(graph::Graph& graph);
Result<bool> fuse_pads(graph::Graph& graph);
Result<bool> trim_windows(graph::Graph& graph);
Result<bool> trim_windows_at_any_size(graph::Graph& graph);
Result<bool> fuse_activations(graph::Graph& graph);
Result<bool> common_subexpressions(graph::Graph& graph);
Result<bool> join_groups(graph::Graph& graph);
Result<bool> order_channels(graph::Graph& graph);
Result<bool> pool_planes(graph::Graph& graph);
Result<bool> pool_planes_at_any_size(graph::Graph& graph);
Result<bool> turn_weights(graph::Graph& graph);
Result<bool> merge_convolutions(graph::Graph& graph);
Result<bool> multiply_adds(graph::Graph& graph);
Result<bool> centre_weights(graph::Graph& graph);

}  // namespace bantam::passes
