#include "import/onnx/counts.h"

#include <set>
#include <utility>
#include <vector>

namespace bantam::import::onnx {
namespace {

// Sizes come from short chains over short vectors; anything longer is computation, not a size.
constexpr std::size_t kMostNodes = 256;
constexpr std::int64_t kMostElements = 1 << 16;
constexpr std::int64_t kMostWork = 1 << 22;

}  // namespace

std::optional<std::vector<graph::NodeId>> LargestCounts::cone(graph::ValueId id) const {
  const graph::Graph& graph = builder_.graph();
  std::set<graph::NodeId> nodes;
  std::vector<graph::ValueId> open = {id};
  while (!open.empty()) {
    const graph::ValueId value = open.back();
    open.pop_back();
    if (value == graph::kNone || graph.is_constant(value) || known_.contains(value)) continue;
    const graph::NodeId producer = graph.value(value).producer;
    if (producer == graph::kNone || nodes.size() >= kMostNodes) return std::nullopt;
    if (!nodes.insert(producer).second) continue;
    const graph::Node& node = graph.node(producer);
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  // Nodes are appended in execution order while a model is imported.
  return std::vector<graph::NodeId>(nodes.begin(), nodes.end());
}

bool LargestCounts::evaluate(graph::NodeId id) {
  const graph::Graph& graph = builder_.graph();
  const graph::Node& node = graph.node(id);
  graph::OperandTables tables = graph::operand_tables(graph, node);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto known = known_.find(node.inputs[i]);
    // Operands are read only; Tensor has no const form.
    if (known != known_.end()) tables.inputs[i].data = const_cast<std::byte*>(known->second.bytes.data());
  }
  std::vector<TensorDesc> descs;
  for (const graph::ValueId output : node.outputs) {
    descs.push_back(output == graph::kNone ? TensorDesc{} : graph.value(output).desc);
    if (descs.back().present() && descs.back().elements() > kMostElements) return false;
  }
  std::vector<Tensor> outputs;
  for (const TensorDesc& desc : descs) outputs.push_back({nullptr, &desc});
  const ops::OpCall call{node.params.data(), tables.inputs, outputs};
  if (node.op->work != nullptr && node.op->work(call) > kMostWork) return false;
  auto results = graph::evaluate(*node.op, node.params, tables.inputs, descs);
  if (!results) return false;
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i] != graph::kNone) known_[node.outputs[i]] = std::move((*results)[i]);
  return true;
}

graph::ValueId LargestCounts::resolve(graph::ValueId id) {
  if (id < 0 || builder_.graph().is_constant(id)) return id;
  if (known_.empty()) return graph::kNone;
  const auto nodes = cone(id);
  if (!nodes) return graph::kNone;
  for (const graph::NodeId node : *nodes)
    if (!evaluate(node)) return graph::kNone;
  const graph::Constant& constant = known_.at(id);
  return builder_.constant("", builder_.desc(id), constant.bytes, constant.owner);
}

}  // namespace bantam::import::onnx
