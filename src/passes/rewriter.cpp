#include "passes/rewriter.h"

#include <algorithm>

#include "passes/list.h"

namespace bantam::passes {

using graph::kNone;
using graph::Node;
using graph::ValueId;

Rewriter::Rewriter(graph::Graph& graph) : graph_(graph), builder_(graph) {}

Result<bool> Rewriter::sweep(const Rule& rule) {
  const std::size_t count = graph_.values.size();
  uses_.assign(count, 0);
  external_.assign(count, false);
  replacement_.resize(count);
  for (std::size_t i = 0; i < count; ++i) replacement_[i] = static_cast<ValueId>(i);
  const auto read_outside = [&](ValueId id) {
    ++uses_[static_cast<std::size_t>(id)];
    external_[static_cast<std::size_t>(id)] = true;
  };
  for (const Node& node : graph_.nodes)
    for (const ValueId id : node.inputs)
      if (id != kNone) ++uses_[static_cast<std::size_t>(id)];
  graph::for_each_result(graph_, read_outside);

  std::vector<Node> old;
  old.swap(graph_.nodes);
  bool changed = false;
  for (Node& node : old) {
    if (node.op == nullptr) continue;
    for (ValueId& id : node.inputs)
      if (id != kNone) id = replacement_[static_cast<std::size_t>(id)];
    reserve();
    builder_.set_source(node.name, node.origin);
    const std::optional<ValueId> by =
        node.outputs.size() == 1 && node.outputs[0] != kNone && node.bodies.empty() ? rule(*this, node) : std::nullopt;
    if (by) {
      replace(node, *by);
      changed = true;
      continue;
    }
    for (const ValueId id : node.outputs)
      if (id != kNone) graph_.value(id).producer = static_cast<graph::NodeId>(graph_.nodes.size());
    graph_.nodes.push_back(std::move(node));
  }
  graph::for_each_result(graph_, [&](ValueId& id) { id = replacement_[static_cast<std::size_t>(id)]; });
  if (auto done = remove_dead_code(graph_); !done) return fail(std::move(done.error()));
  return changed;
}

void Rewriter::reserve() {
  const auto grow = [](auto& list) {
    if (list.capacity() - list.size() < kMaxEmitted) list.reserve(2 * list.size() + kMaxEmitted);
  };
  grow(graph_.nodes);
  grow(graph_.values);
}

void Rewriter::replace(const Node& node, ValueId by) {
  const auto out = static_cast<std::size_t>(node.outputs[0]);
  const auto to = static_cast<std::size_t>(by);
  replacement_[out] = by;
  uses_[to] += uses_[out];
  uses_[out] = 0;
  const bool was_external = external_.size() > to && external_[to];
  graph::Value& result = graph_.value(by);
  const graph::Value& replaced = graph_.value(node.outputs[0]);
  // A port's value keeps the port's name; a value the model names keeps its name otherwise.
  if (result.name.empty() || (external_[out] && !was_external && result.producer != kNone)) {
    result.name = replaced.name;
    result.layout = replaced.layout;
  }
  if (!result.quantization) result.quantization = replaced.quantization;
  external_.resize(graph_.values.size(), false);
  external_[to] = external_[to] || external_[out];
  for (const ValueId id : node.inputs)
    if (id != kNone) drop_use(id);
}

bool Rewriter::unread(const Node& node) const {
  return std::all_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId id) { return id == kNone || uses_[static_cast<std::size_t>(id)] == 0; });
}

void Rewriter::drop_use(ValueId id) {
  std::vector<ValueId> dropped{id};  // a list, not recursion: chains may be long
  while (!dropped.empty()) {
    const ValueId value = dropped.back();
    dropped.pop_back();
    const graph::NodeId producer = graph_.value(value).producer;
    if (--uses_[static_cast<std::size_t>(value)] != 0 || producer == kNone) continue;
    Node& node = graph_.node(producer);
    if (node.op == nullptr || !unread(node)) continue;
    node.op = nullptr;
    for (const ValueId operand : node.inputs)
      if (operand != kNone) dropped.push_back(operand);
  }
}

const Node* Rewriter::producer(ValueId id) const {
  if (id == kNone || graph_.value(id).producer == kNone) return nullptr;
  const Node& node = graph_.node(graph_.value(id).producer);
  return node.op != nullptr ? &node : nullptr;
}

const Node* Rewriter::producer(ValueId id, const ops::OpDef& op) const {
  const Node* node = producer(id);
  return node != nullptr && node->is(op) ? node : nullptr;
}

std::optional<ValueId> Rewriter::emit(const ops::OpDef& op, graph::Params params, std::vector<ValueId> inputs) {
  const auto results = emit_all(op, std::move(params), std::move(inputs));
  return results ? std::optional(results->front()) : std::nullopt;
}

std::optional<std::vector<ValueId>> Rewriter::emit_all(const ops::OpDef& op, graph::Params params,
                                                       std::vector<ValueId> inputs) {
  const std::vector<ValueId> operands = inputs;
  auto results = builder_.emit(op, std::move(params), std::move(inputs));
  uses_.resize(graph_.values.size(), 0);
  if (!results) return std::nullopt;
  if (!graph_.is_constant(results->front()))
    for (const ValueId id : operands)
      if (id != kNone) ++uses_[static_cast<std::size_t>(id)];
  return std::move(*results);
}

void Rewriter::set_fused_source(const Node& first, const Node& second) {
  const bool names = !first.origin.empty() && !second.origin.empty();
  set_source(first.name, names ? first.origin + "+" + second.origin : first.origin + second.origin);
}

std::optional<ValueId> Rewriter::reshape(ValueId x, const TensorDesc& like) {
  const std::size_t nodes = graph_.nodes.size();
  auto result = builder_.reshape(x, dims_of(like));
  uses_.resize(graph_.values.size(), 0);
  if (!result) return std::nullopt;
  if (graph_.nodes.size() != nodes) ++uses_[static_cast<std::size_t>(x)];
  return *result;
}

std::optional<ValueId> Rewriter::transpose(ValueId x, std::span<const int> perm) {
  const std::size_t nodes = graph_.nodes.size();
  auto result = builder_.transpose(x, perm);
  uses_.resize(graph_.values.size(), 0);
  if (!result) return std::nullopt;
  if (graph_.nodes.size() != nodes) ++uses_[static_cast<std::size_t>(x)];
  return *result;
}

bool is_plain_binary(const Node& node, ops::BinaryFunction function) {
  if (!node.is(ops::kBinary)) return false;
  const auto& p = node.as<ops::BinaryParams>();
  return p.function == function && p.activation.function == ops::UnaryFunction::kIdentity;
}

const Node* plain_binary(const Rewriter& rewriter, ValueId id, ops::BinaryFunction function) {
  const Node* node = rewriter.producer(id);
  return node != nullptr && is_plain_binary(*node, function) ? node : nullptr;
}

std::optional<float> splat(const graph::Graph& graph, ValueId id) {
  if (!graph.is_constant(id) || graph.value(id).desc.type != ElementType::kF32) return std::nullopt;
  const auto bytes = graph.value(id).constant->bytes;
  if (bytes.size() < sizeof(float)) return std::nullopt;
  for (std::size_t i = sizeof(float); i < bytes.size(); i += sizeof(float))
    if (std::memcmp(bytes.data(), bytes.data() + i, sizeof(float)) != 0) return std::nullopt;
  float first = 0;
  std::memcpy(&first, bytes.data(), sizeof first);
  return first;
}

std::optional<std::int64_t> integer_splat(const graph::Graph& graph, ValueId id) {
  const auto elements = graph::constant_integers(graph, id);
  if (!elements || elements->empty()) return std::nullopt;
  const bool equal = std::all_of(elements->begin(), elements->end(), [&](auto e) { return e == elements->front(); });
  return equal ? std::optional(elements->front()) : std::nullopt;
}

bool is_splat(const graph::Graph& graph, ValueId id, int number) {
  if (const auto value = splat(graph, id)) return *value == static_cast<float>(number);
  const auto value = integer_splat(graph, id);
  return value && *value == number;
}

std::vector<std::int64_t> dims_of(const TensorDesc& desc) { return {desc.dims, desc.dims + desc.rank}; }

}  // namespace bantam::passes
