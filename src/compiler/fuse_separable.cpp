#include "compiler/fuse_separable.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "ops/narrowing.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/separable_conv2d/separable_conv2d.h"
#include "ops/nn/separable_conv2d_affine/separable_conv2d_affine.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

/// What may be joined: convolutions of one family, by the form of their parameters.
struct PairFamily {
  const ops::OpDef* depthwise;
  const ops::OpDef* pointwise;
  const ops::OpDef* joint;
  std::size_t operands;  ///< of one convolution at most, image and weights included
  bool (*is_depthwise)(const Graph& graph, const Node& node);
  bool (*is_pointwise)(const Graph& graph, const Node& node);
  /// Nothing when the second convolution takes its operand for something else than the first gives.
  std::optional<graph::Params> (*join)(const Node& depthwise, const Node& pointwise);
};

const TensorDesc& pair_weights(const Graph& graph, const Node& node) { return graph.value(node.inputs[1]).desc; }

/// Does the convolution read one pixel for one?
template <typename P>
bool is_pointwise(const Graph& graph, const Node& node) {
  const TensorDesc& w = pair_weights(graph, node);
  const auto& p = node.as<P>();
  return w.dims[1] == 1 && w.dims[2] == 1 && p.groups == 1 && p.stride_h == 1 && p.stride_w == 1 && p.pad_top == 0 &&
         p.pad_bottom == 0 && p.pad_left == 0 && p.pad_right == 0;
}

std::optional<graph::Params> join_plain(const Node& depthwise, const Node& pointwise) {
  const auto& first = depthwise.as<ops::Conv2dParams>();
  const auto& second = pointwise.as<ops::Conv2dParams>();
  if (first.output_zero_point != second.input_zero_point) return std::nullopt;
  return graph::Params::of(ops::SeparableConv2dParams{.depthwise = first,
                                                      .activation = second.activation,
                                                      .output_zero_point = second.output_zero_point,
                                                      .minimum = second.minimum,
                                                      .maximum = second.maximum});
}

std::optional<graph::Params> join_affine(const Node& depthwise, const Node& pointwise) {
  return graph::Params::of(ops::SeparableConv2dAffineParams{.depthwise = depthwise.as<ops::Conv2dAffineParams>(),
                                                            .pointwise = pointwise.as<ops::Conv2dAffineParams>().form});
}

constexpr PairFamily kPairFamilies[] = {
    {&ops::kDepthwiseConv2d, &ops::kConv2d, &ops::kSeparableConv2d, 5, [](const Graph&, const Node&) { return true; },
     is_pointwise<ops::Conv2dParams>, join_plain},
    {&ops::kConv2dAffine, &ops::kConv2dAffine, &ops::kSeparableConv2dAffine, 6,
     [](const Graph& graph, const Node& node) { return pair_weights(graph, node).dims[3] == 1; },
     is_pointwise<ops::Conv2dAffineParams>, join_affine},
};

/// The joint node, but for its name; nothing when these are no pair.
std::optional<Node> joint_node(const Graph& graph, const Node& depthwise, const Node& pointwise) {
  for (const PairFamily& family : kPairFamilies) {
    if (!depthwise.is(*family.depthwise) || !pointwise.is(*family.pointwise) ||
        !family.is_depthwise(graph, depthwise) || !family.is_pointwise(graph, pointwise))
      continue;
    auto params = family.join(depthwise, pointwise);
    if (!params) return std::nullopt;
    Node joint;
    joint.op = family.joint;
    joint.params = std::move(*params);
    joint.inputs = {depthwise.inputs[0], depthwise.inputs[1], pointwise.inputs[1]};
    for (const Node* half : {&depthwise, &pointwise})
      for (std::size_t i = 2; i < family.operands; ++i)
        joint.inputs.push_back(i < half->inputs.size() ? half->inputs[i] : kNone);
    while (joint.inputs.back() == kNone) joint.inputs.pop_back();
    joint.outputs = pointwise.outputs;
    return joint;
  }
  return std::nullopt;
}

/// "simd" of "f32_gemm__simd".
std::string_view backend_suffix(const ops::KernelVariant& variant) {
  return variant.name.substr(variant.name.rfind('_') + 1);
}

/// Would the joint node have a kernel made of these two? There is none for weights that are narrowed.
bool has_joint_kernel(const Graph& graph, const Node& joint, const ops::KernelVariant* first,
                      const ops::KernelVariant* second, const Target& target) {
  if (first == nullptr || second == nullptr || ops::find_narrowing(ops::kConv2d, *second) != nullptr) return false;
  if (backend_suffix(*first) != backend_suffix(*second)) return false;
  const graph::OperandTables tables = graph::operand_tables(graph, joint);
  TensorDesc result;
  if (!ops::infer(*joint.op, joint.params.data(), tables.inputs, {&result, 1}).ok()) return false;
  return std::ranges::any_of(joint.op->variants, [&](const ops::KernelVariant& variant) {
    return backend_suffix(variant) == backend_suffix(*first) && target.has_kernel(variant.name) &&
           ops::supports(variant, tables.call(joint));
  });
}

}  // namespace

Result<std::vector<SeparablePair>> separable_pairs(const Graph& graph, const KernelPolicy& policy) {
  std::vector<SeparablePair> pairs;
  if (!policy.rules.empty()) return pairs;
  const graph::Uses uses(graph);
  std::vector<bool> taken(graph.nodes.size(), false);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (taken[n] || node.outputs.size() != 1 || node.outputs[0] == kNone) continue;
    const auto reader = uses.only(node.outputs[0]);
    if (!reader || reader->operand != 0 || !joint_node(graph, node, graph.node(reader->node))) continue;
    pairs.push_back({static_cast<NodeId>(n), reader->node});
    taken[static_cast<std::size_t>(reader->node)] = true;
  }
  if (pairs.empty()) return pairs;
  const auto selected = select_kernels(graph, policy);
  if (!selected) return fail(selected.error());
  std::erase_if(pairs, [&](const SeparablePair& pair) {
    const auto kernel = [&](NodeId n) { return (*selected)[static_cast<std::size_t>(n)].variant; };
    return !has_joint_kernel(graph, *joint_node(graph, graph.node(pair.depthwise), graph.node(pair.pointwise)),
                             kernel(pair.depthwise), kernel(pair.pointwise), policy.target);
  });
  return pairs;
}

void fuse_pairs(Graph& graph, const std::vector<SeparablePair>& pairs) {
  for (const auto& [depthwise, pointwise] : pairs) {
    Node& first = graph.node(depthwise);
    Node& second = graph.node(pointwise);
    Node joint = *joint_node(graph, first, second);
    joint.name = first.name == second.name ? first.name : first.name + "+" + second.name;
    joint.origin = first.origin + "+" + second.origin;
    second = std::move(joint);
    first = {};
  }
  graph::compact(graph);
}

}  // namespace bantam::compiler
