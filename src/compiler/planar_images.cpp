#include "compiler/planar_images.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/select.h"
#include "graph/control.h"
#include "ops/data/transpose/transpose.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/planar_conv2d/planar_conv2d.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;

/// The kernel that both operators have.
constexpr std::string_view kKernel = "f32_few_inputs__simd";

struct Pair {
  NodeId transpose = graph::kNone;
  NodeId convolution = graph::kNone;
};

/// Does the node move the channels of an image behind its pixels?
bool moves_channels_last(const Node& node) {
  constexpr std::int32_t kOrder[] = {0, 2, 3, 1};
  if (node.op == nullptr || !node.is(ops::kTranspose)) return false;
  const ops::IntList& perm = node.as<ops::TransposeParams>().perm;
  return perm.size == 4 && std::equal(std::begin(kOrder), std::end(kOrder), perm.v);
}

/// Transposes and the convolutions that alone read them.
std::vector<Pair> find_pairs(const Graph& graph) {
  std::vector<Pair> pairs;
  const graph::Uses uses(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& transpose = graph.nodes[n];
    if (!moves_channels_last(transpose)) continue;
    const auto reader = uses.only(transpose.outputs[0]);
    if (!reader || reader->operand != 0 || !graph.node(reader->node).is(ops::kConv2d)) continue;
    const TensorDesc& image = graph.value(transpose.inputs[0]).desc;
    // Turning a view gains nothing.
    if (image.dims[1] > 1 && image.dims[2] > 1) pairs.push_back({static_cast<NodeId>(n), reader->node});
  }
  return pairs;
}

void join(Graph& graph, const std::vector<Pair>& pairs) {
  for (const auto& [transpose, convolution] : pairs) {
    Node& node = graph.node(convolution);
    node.op = &ops::kPlanarConv2d;
    node.inputs[0] = graph.node(transpose).inputs[0];
    graph.node(transpose) = {};
  }
  graph::compact(graph);
}

}  // namespace

Result<std::optional<Graph>> read_planes(const Graph& graph, const PlanOptions& options) {
  if (!has_one_size(graph, options) || graph::has_control(graph) || !options.backends.empty()) return std::nullopt;
  std::vector<Pair> pairs = find_pairs(graph);
  if (pairs.empty()) return std::nullopt;
  const auto selected = select_kernels(graph, kernel_policy(options));
  if (!selected) return fail(selected.error());
  std::erase_if(pairs, [&](const Pair& pair) {
    const ops::KernelVariant* kernel = (*selected)[static_cast<std::size_t>(pair.convolution)].variant;
    return kernel == nullptr || kernel->name != kKernel;
  });
  if (pairs.empty()) return std::nullopt;
  Graph result = graph;
  join(result, pairs);
  return result;
}

}  // namespace bantam::compiler
