#include "graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

namespace bantam::graph {
namespace {

constexpr TensorDesc kAbsent{};

bool is_aligned(const std::byte* address, std::uintptr_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

template <typename To, typename From>
std::vector<To> convert_elements(std::span<const std::byte> bytes) {
  std::vector<To> result(bytes.size() / sizeof(From));
  for (std::size_t i = 0; i < result.size(); ++i) {
    From element;
    std::memcpy(&element, bytes.data() + i * sizeof(From), sizeof(From));  // constants may be unaligned
    result[i] = static_cast<To>(element);
  }
  return result;
}

}  // namespace

std::string format_desc(const TensorDesc& desc) {
  return fmt::format("{}[{}]", element_type_name(desc.type), fmt::join(desc.dims, desc.dims + desc.rank, ","));
}

std::int64_t constant_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const Value& value : graph.values)
    if (value.constant) bytes += value.desc.bytes();
  return bytes;
}

std::optional<std::vector<std::int64_t>> constant_integers(const Graph& graph, ValueId id) {
  if (!graph.is_constant(id)) return std::nullopt;
  const Value& v = graph.value(id);
  const auto bytes = v.constant->bytes;
  switch (v.desc.type) {
    case ElementType::kI8: return convert_elements<std::int64_t, std::int8_t>(bytes);
    case ElementType::kU8:
    case ElementType::kBool: return convert_elements<std::int64_t, std::uint8_t>(bytes);
    case ElementType::kI16: return convert_elements<std::int64_t, std::int16_t>(bytes);
    case ElementType::kU16: return convert_elements<std::int64_t, std::uint16_t>(bytes);
    case ElementType::kI32: return convert_elements<std::int64_t, std::int32_t>(bytes);
    case ElementType::kU32: return convert_elements<std::int64_t, std::uint32_t>(bytes);
    case ElementType::kI64: return convert_elements<std::int64_t, std::int64_t>(bytes);
    default: return std::nullopt;
  }
}

std::optional<std::vector<float>> constant_floats(const Graph& graph, ValueId id) {
  if (!graph.is_constant(id) || graph.value(id).desc.type != ElementType::kF32) return std::nullopt;
  return convert_elements<float, float>(graph.value(id).constant->bytes);
}

Uses::Uses(const Graph& graph) : uses_(graph.values.size()), external_(graph.values.size(), false) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op == nullptr) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNone)
        uses_[static_cast<std::size_t>(node.inputs[i])].push_back(
            {static_cast<NodeId>(n), static_cast<std::int32_t>(i)});
  }
  for_each_result(graph, [&](ValueId id) { external_[static_cast<std::size_t>(id)] = true; });
}

std::optional<Uses::Use> Uses::only(ValueId id) const {
  const auto readers = of(id);
  if (readers.size() != 1 || is_external(id)) return std::nullopt;
  return readers.front();
}

void replace_uses(Graph& graph, ValueId from, ValueId to) {
  for (Node& node : graph.nodes) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  for_each_result(graph, [&](ValueId& id) {
    if (id == from) id = to;
  });
}

void compact(Graph& graph) {
  std::erase_if(graph.nodes, [](const Node& node) { return node.op == nullptr; });
  std::vector<bool> referenced(graph.values.size(), false);
  const auto mark = [&](ValueId id) {
    if (id != kNone) referenced[static_cast<std::size_t>(id)] = true;
  };
  for (const Node& node : graph.nodes) {
    std::for_each(node.inputs.begin(), node.inputs.end(), mark);
    std::for_each(node.outputs.begin(), node.outputs.end(), mark);
  }
  for (const Port& port : graph.inputs) mark(port.value);
  for (const State& state : graph.states) mark(state.in);
  for_each_result(graph, mark);

  std::vector<ValueId> renamed(graph.values.size(), kNone);
  std::vector<Value> kept;
  kept.reserve(graph.values.size());
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    if (!referenced[i]) continue;
    renamed[i] = static_cast<ValueId>(kept.size());
    kept.push_back(std::move(graph.values[i]));
    kept.back().producer = kNone;
  }
  graph.values = std::move(kept);

  const auto rename = [&](ValueId& id) {
    if (id != kNone) id = renamed[static_cast<std::size_t>(id)];
  };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    std::for_each(node.inputs.begin(), node.inputs.end(), rename);
    std::for_each(node.outputs.begin(), node.outputs.end(), rename);
    for (const ValueId id : node.outputs)
      if (id != kNone) graph.value(id).producer = static_cast<NodeId>(n);
  }
  for (Port& port : graph.inputs) rename(port.value);
  for (State& state : graph.states) rename(state.in);
  for_each_result(graph, rename);
}

Result<void> sort_topologically(Graph& graph) {
  const std::size_t count = graph.nodes.size();
  std::vector<NodeId> producer(graph.values.size(), kNone);
  for (std::size_t n = 0; n < count; ++n)
    for (const ValueId id : graph.nodes[n].outputs)
      if (id != kNone) producer[static_cast<std::size_t>(id)] = static_cast<NodeId>(n);

  std::vector<int> missing(count, 0);
  std::vector<std::vector<NodeId>> readers(count);
  for (std::size_t n = 0; n < count; ++n) {
    for (const ValueId id : graph.nodes[n].inputs) {
      if (id == kNone || producer[static_cast<std::size_t>(id)] == kNone) continue;
      readers[static_cast<std::size_t>(producer[static_cast<std::size_t>(id)])].push_back(static_cast<NodeId>(n));
      ++missing[n];
    }
  }
  // The smallest ready index first keeps the given order wherever it is valid.
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (std::size_t n = 0; n < count; ++n)
    if (missing[n] == 0) ready.push(static_cast<NodeId>(n));
  std::vector<Node> sorted;
  sorted.reserve(count);
  while (!ready.empty()) {
    const NodeId n = ready.top();
    ready.pop();
    sorted.push_back(std::move(graph.node(n)));
    for (const NodeId reader : readers[static_cast<std::size_t>(n)])
      if (--missing[static_cast<std::size_t>(reader)] == 0) ready.push(reader);
  }
  if (sorted.size() != count) {
    const auto stuck = std::find_if(missing.begin(), missing.end(), [](int m) { return m > 0; }) - missing.begin();
    return fail(StatusCode::kInvalidModel,
                fmt::format("the graph has a cycle through node '{}'", graph.node(static_cast<NodeId>(stuck)).name),
                "export the model again; a model must be free of cycles");
  }
  graph.nodes = std::move(sorted);
  for (std::size_t n = 0; n < count; ++n)
    for (const ValueId id : graph.nodes[n].outputs)
      if (id != kNone) graph.value(id).producer = static_cast<NodeId>(n);
  return {};
}

OperandTables operand_tables(const Graph& graph, const Node& node) {
  OperandTables tables;
  tables.inputs.reserve(node.inputs.size());
  for (const ValueId id : node.inputs) {
    if (id == kNone) {
      tables.inputs.push_back({nullptr, &kAbsent});
      continue;
    }
    const Value& v = graph.value(id);
    // Kernels never write through a constant operand.
    std::byte* data = v.constant ? const_cast<std::byte*>(v.constant->bytes.data()) : nullptr;
    if (data != nullptr && v.constant->bytes.size() <= kAlignedConstantBytes && !is_aligned(data, 8)) {
      auto copy = std::make_unique<std::byte[]>(v.constant->bytes.size());
      if (!v.constant->bytes.empty()) std::memcpy(copy.get(), data, v.constant->bytes.size());
      data = copy.get();
      tables.aligned_copies.push_back(std::move(copy));
    }
    tables.inputs.push_back({data, &v.desc});
  }
  for (const ValueId id : node.outputs)
    tables.outputs.push_back({nullptr, id == kNone ? &kAbsent : &graph.value(id).desc});
  return tables;
}

}  // namespace bantam::graph
