#include "compiler/channel_parts.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/order.h"
#include "ops/data/concat/concat.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "ops/nn/gemm/gemm_f32.h"
#include "ops/nn/matmul/matmul.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

/// Channels that stay together: a panel of packed weights.
constexpr std::int64_t kBlock = ops::gemm::kPanel;

template <typename Params>
std::optional<int> convolution_axis(const Graph& /*graph*/, const Node& node) {
  if (node.as<Params>().groups != 1) return std::nullopt;
  return 0;
}

std::optional<int> product_axis(const Graph& graph, const Node& node) {
  if (graph.value(node.inputs[1]).desc.rank != 2) return std::nullopt;
  return node.as<ops::MatmulParams>().transpose_b != 0 ? 0 : 1;
}

/// The axis of operand 1 that counts the channels; further operands have one number per channel, or one for all.
struct ChannelRule {
  const ops::OpDef* op;
  std::optional<int> (*weights_axis)(const Graph& graph, const Node& node);
};
constexpr ChannelRule kChannelRules[] = {
    {&ops::kConv2d, convolution_axis<ops::Conv2dParams>},
    {&ops::kConv2dAffine, convolution_axis<ops::Conv2dAffineParams>},
    {&ops::kMatmul, product_axis},
};

std::optional<int> weights_axis(const Graph& graph, const Node& node) {
  for (const ChannelRule& rule : kChannelRules)
    if (node.is(*rule.op)) return rule.weights_axis(graph, node);
  return std::nullopt;
}

/// Elements [first, last) of a constant along an axis. Requires elements of whole bytes.
ValueId append_slice(Graph& graph, ValueId id, int axis, std::int64_t first, std::int64_t last) {
  const graph::Value& whole = graph.value(id);
  std::int64_t outer = 1;
  std::int64_t inner = element_size(whole.desc.type);
  for (int d = 0; d < axis; ++d) outer *= whole.desc.dims[d];
  for (int d = axis + 1; d < whole.desc.rank; ++d) inner *= whole.desc.dims[d];
  graph::Value part;
  part.name = whole.name;
  part.desc = whole.desc;
  part.desc.dims[axis] = static_cast<std::int32_t>(last - first);
  part.desc.set_dense_strides();
  const auto row = static_cast<std::size_t>((last - first) * inner);
  const auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(outer) * row);
  for (std::int64_t o = 0; o < outer; ++o)
    std::memcpy(bytes->data() + static_cast<std::size_t>(o) * row,
                whole.constant->bytes.data() + (o * whole.desc.dims[axis] + first) * inner, row);
  part.constant = graph::Constant{*bytes, bytes};
  return graph.add_value(std::move(part));
}

/// By operand from the second on: the axis to cut along, -1 where a part reads all of it. None where one that has to be
/// cut cannot be.
std::optional<std::vector<int>> axes_of(const Graph& graph, const Node& node, std::int64_t channels) {
  const std::optional<int> weights = weights_axis(graph, node);
  if (!weights) return std::nullopt;
  std::vector<int> axes(node.inputs.size(), -1);
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) continue;
    const TensorDesc& desc = graph.value(node.inputs[i]).desc;
    if (i > 1 && desc.elements() == 1) continue;
    const int axis = i == 1 ? *weights : 0;
    const bool fits = (i == 1 || desc.rank == 1) && desc.rank > axis && desc.dims[axis] == channels;
    if (!fits || !graph.is_constant(node.inputs[i]) || element_size(desc.type) == 0) return std::nullopt;
    axes[i] = axis;
  }
  return axes;
}

/// A part is called after the whole layer and its channels there, "conv channels 32 to 63", also when a part is cut
/// again.
class PartNames {
 public:
  explicit PartNames(const std::string& whole) : layer_(whole) {
    const std::size_t at = whole.rfind(kChannels);
    if (at == std::string::npos) return;
    const char* number = whole.data() + at + kChannels.size();
    const char* end = whole.data() + whole.size();
    const auto [rest, error] = std::from_chars(number, end, first_);
    if (error != std::errc() || !std::string_view(rest, end).starts_with(kTo)) {
      first_ = 0;
    } else {
      layer_.resize(at);
    }
  }

  std::string of(std::int64_t first, std::int64_t last) const {
    return fmt::format("{}{}{}{}{}", layer_, kChannels, first_ + first, kTo, first_ + last - 1);
  }

 private:
  static constexpr std::string_view kChannels = " channels ";
  static constexpr std::string_view kTo = " to ";
  std::string layer_;
  std::int64_t first_ = 0;
};

}  // namespace

std::optional<Graph> in_channel_parts(const Graph& graph, NodeId n, int parts) {
  const Node& whole = graph.node(n);
  if (whole.outputs.size() != 1 || whole.inputs.size() < 2 || whole.inputs[1] == kNone) return std::nullopt;
  const TensorDesc& desc = graph.value(whole.outputs[0]).desc;
  const std::int64_t channels = desc.last(0);
  const std::int64_t blocks = (channels + kBlock - 1) / kBlock;
  const auto axes = axes_of(graph, whole, channels);
  if (!axes || parts < 2 || blocks < parts) return std::nullopt;
  const PartNames names(whole.name);
  Graph result = graph;
  std::vector<NodeId> order;
  for (NodeId before = 0; before < n; ++before) order.push_back(before);
  Node concat;
  concat.op = &ops::kConcat;
  concat.params = graph::Params::of(ops::ConcatParams{desc.rank - 1});
  concat.name = whole.name;
  concat.origin = whole.origin;
  concat.outputs = whole.outputs;
  for (int p = 0; p < parts; ++p) {
    const std::int64_t first = blocks * p / parts * kBlock;
    const std::int64_t last = std::min(blocks * (p + 1) / parts * kBlock, channels);
    const auto id = static_cast<NodeId>(result.nodes.size());
    Node part = whole;
    part.name = names.of(first, last);
    for (std::size_t i = 1; i < part.inputs.size(); ++i)
      if ((*axes)[i] >= 0) part.inputs[i] = append_slice(result, part.inputs[i], (*axes)[i], first, last);
    graph::Value value;
    value.desc = desc;
    value.desc.dims[desc.rank - 1] = static_cast<std::int32_t>(last - first);
    value.desc.set_dense_strides();
    value.producer = id;
    part.outputs = {result.add_value(std::move(value))};
    concat.inputs.push_back(part.outputs[0]);
    result.nodes.push_back(std::move(part));
    order.push_back(id);
  }
  result.node(n) = std::move(concat);
  for (auto after = n; after < static_cast<NodeId>(graph.nodes.size()); ++after) order.push_back(after);
  reorder(result, order);
  return result;
}

}  // namespace bantam::compiler
