// Computes a 1x1 convolution of integers in groups of few channels as one of all channels, whose further weights are
// zeros: vectors of results are full so, though most of what they multiply is nothing. Bit for bit the same.
#include <cstring>
#include <memory>
#include <vector>

#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::kNone;
using graph::Node;
using graph::ValueId;
using Replacement = std::optional<ValueId>;

/// Is one product with zeros faster than those of the groups? Measured with AVX2 and with VNNI: it takes two vectors of
/// results for every channel of the image.
bool pays(std::int64_t groups, std::int64_t inputs, std::int64_t outputs) {
  constexpr std::int64_t kMostGroups = 8;
  constexpr std::int64_t kMostInputs = 128;  // of all groups, like the outputs
  constexpr std::int64_t kMostOutputs = 32;
  return groups > 2 && groups <= kMostGroups && groups * inputs <= kMostInputs && groups * outputs <= kMostOutputs;
}

/// The 8-bit weights [OC,1,1,C] of those [OC,1,1,C/groups]; `nothing` between.
ValueId joined_weights(Rewriter& rewriter, ValueId id, std::int32_t groups, std::uint8_t nothing) {
  TensorDesc w = rewriter.desc(id);
  const std::int64_t inputs = w.dims[3];
  const std::int64_t of_group = w.dims[0] / groups;
  const std::int64_t all = inputs * groups;
  const auto joined = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(w.dims[0] * all),
                                                               static_cast<std::byte>(nothing));
  const std::byte* from = rewriter.value(id).constant->bytes.data();
  for (std::int64_t o = 0; o < w.dims[0]; ++o)
    std::memcpy(joined->data() + o * all + o / of_group * inputs, from + o * inputs, static_cast<std::size_t>(inputs));
  w.dims[3] = static_cast<std::int32_t>(all);
  return rewriter.constant(w, graph::Constant{*joined, joined});
}

template <typename Params>
Replacement join(Rewriter& rewriter, const Node& node, std::int32_t nothing) {
  auto params = node.as<Params>();
  const TensorDesc w = rewriter.desc(node.inputs[1]);
  const std::int32_t groups = params.groups;
  if (!rewriter.graph().is_constant(node.inputs[1]) || (w.type != ElementType::kI8 && w.type != ElementType::kU8) ||
      w.dims[1] != 1 || w.dims[2] != 1 || w.dims[3] < 2 || !pays(groups, w.dims[3], w.dims[0] / groups))
    return std::nullopt;
  std::vector<ValueId> inputs = node.inputs;
  inputs[1] = joined_weights(rewriter, node.inputs[1], groups, static_cast<std::uint8_t>(nothing));
  params.groups = 1;
  return rewriter.emit(*node.op, params, std::move(inputs));
}

Replacement join_node(Rewriter& rewriter, const Node& node) {
  if (node.is(ops::kConv2d)) return join<ops::Conv2dParams>(rewriter, node, 0);
  if (!node.is(ops::kConv2dAffine) || (node.inputs.size() > 5 && node.inputs[5] != kNone)) return std::nullopt;
  return join<ops::Conv2dAffineParams>(rewriter, node, node.as<ops::Conv2dAffineParams>().form.weights_zero_point);
}

}  // namespace

Result<bool> join_groups(graph::Graph& graph) { return Rewriter(graph).sweep(join_node); }

}  // namespace bantam::passes
