#include "passes/passes.h"

#include <fmt/format.h>

#include "passes/list.h"

namespace bantam::passes {
namespace {

constexpr Pass kPasses[] = {
    {"dead-code", "removes nodes whose results nobody reads", remove_dead_code},
    {"name-turned", "names what transposes turn as the model names the turned tensor", name_turned},
    {"fold-constants", "computes nodes whose operands are all constant", fold_constants, fold_constants_at_any_size},
    {"remove-identities", "removes nodes that give their operand unchanged", remove_identities,
     remove_identities_at_any_size},
    {"merge-slices", "makes slices and concats of regular gathers and scatters, and merges them", merge_slices,
     merge_slices_at_any_size},
    {"group-norms", "normalises groups of channels where they lie", group_norms},
    {"recognize-functions", "finds activations and normalisations written out as arithmetic", recognize_functions},
    {"fuse-recurrent-cells", "computes steps of LSTMs and GRUs that are written out as arithmetic by the operators",
     fuse_recurrent_cells},
    {"integer-arithmetic", "computes in integers what lies between dequantisation and quantisation",
     integer_arithmetic},
    {"fuse-attention", "computes attention without a matrix of its scores", fuse_attention},
    {"channels-last", "computes in the layout that transposes the fewest bytes", channels_last},
    {"sink-reshapes", "moves reshapes behind element-wise operators", sink_reshapes, sink_reshapes_at_any_size},
    {"sink-lookups", "looks up the maxima over windows instead of all that these read", sink_lookups},
    {"scale-integer-sums", "makes integer sums real in the product that computes them", scale_integer_sums},
    {"fuse-affine", "folds scales, biases and batch normalisation into weights", fuse_affine},
    {"fuse-pads", "moves padding into the convolution or pooling behind it", fuse_pads},
    {"trim-windows", "drops taps of convolutions that meet nothing but padding", trim_windows,
     trim_windows_at_any_size},
    {"fuse-activations", "applies activations in the operator before them", fuse_activations},
    {"common-subexpressions", "computes equal expressions once", common_subexpressions},
    {"join-groups", "computes integer 1x1 convolutions of groups of few channels as one", join_groups},
    {"order-channels", "gives channels in the order in which a transpose behind wants them", order_channels},
    {"pool-planes", "pools images whose channels come first plane by plane", pool_planes, pool_planes_at_any_size},
    {"turn-weights", "multiplies what is flattened as it lies, by weights in that order", turn_weights},
    {"merge-convolutions", "computes small convolutions of one image as one", merge_convolutions},
    {"multiply-adds", "scales and shifts in one step", multiply_adds},
    {"centre-weights", "moves zero points of integer weights into these", centre_weights},
};

std::string pass_names() {
  std::string names;
  for (const Pass& pass : kPasses) names += (names.empty() ? "" : ", ") + std::string(pass.name);
  return names;
}

/// Innermost bodies first. Passes see a node with bodies as an operator that they know nothing of. The depth is bounded
/// by graph::kMaxBodyDepth.
Result<bool> run_in_all_bodies(graph::Graph& graph, Result<bool> (*run)(graph::Graph& graph)) {
  bool changed = false;
  for (graph::Node& node : graph.nodes) {
    for (graph::Graph& body : node.bodies) {
      auto inside = run_in_all_bodies(body, run);
      if (!inside) return inside;
      changed = changed || *inside;
    }
  }
  const auto here = run(graph);
  return here ? Result<bool>(*here || changed) : here;
}

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

Result<void> run_passes(graph::Graph& graph, const PassOptions& options) {
  const auto known = [&] {
    for (const Pass& pass : kPasses)
      if (pass.name == options.stop_after) return true;
    return options.stop_after.empty();
  };
  if (!known())
    return fail(StatusCode::kInvalidArgument, fmt::format("there is no pass '{}'", options.stop_after),
                "use one of: " + pass_names());
  for (const Pass& pass : kPasses) {
    auto changed =
        run_in_all_bodies(graph, options.any_size && pass.run_at_any_size != nullptr ? pass.run_at_any_size : pass.run);
    if (!changed) return fail(std::move(changed.error()).in(fmt::format("pass '{}'", pass.name)));
    if (options.verify)
      if (auto sound = graph::verify(graph); !sound)
        return fail(std::move(sound.error()).in(fmt::format("pass '{}' broke the graph", pass.name)));
    if (pass.name == options.stop_after) break;
  }
  return {};
}

}  // namespace bantam::passes
