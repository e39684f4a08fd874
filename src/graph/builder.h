// Builder: appends to a graph, infers shapes and folds constants as it goes.
//
// Importers emit core operators in execution order. Because shapes are known at once and nodes whose operands are all
// constant are evaluated with the reference kernel, a chain such as Shape -> Gather -> Concat -> Reshape arrives as a
// constant by the time its reader asks. Errors name the node and the operand. Single-threaded.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace bantam::graph {

class Builder {
 public:
  /// `graph` must outlive the builder.
  explicit Builder(Graph& graph) : graph_(graph), budget_(std::make_shared<FoldingBudget>()) {}
  /// For a body of a node in the graph of `outer`: what both fold is limited together.
  Builder(Graph& graph, const Builder& outer) : graph_(graph), budget_(outer.budget_) {}

  Graph& graph() noexcept { return graph_; }
  const TensorDesc& desc(ValueId id) const { return graph_.value(id).desc; }

  /// Name and origin that following nodes get (the source node they are lowered from).
  void set_source(std::string node_name, std::string origin) {
    source_name_ = std::move(node_name);
    origin_ = std::move(origin);
  }

  /// A model input; `desc` is made dense.
  ValueId input(std::string name, TensorDesc desc);
  /// A state's `in` value; bind its `out` later through graph().states.
  ValueId state(std::string name, TensorDesc desc, std::optional<Constant> initial = std::nullopt);
  /// A constant over bytes kept alive by `owner`. Requires bytes.size() == desc.bytes() after set_dense_strides.
  ValueId constant(std::string name, TensorDesc desc, std::span<const std::byte> bytes,
                   std::shared_ptr<const void> owner);
  /// A constant that owns a copy of `elements`.
  template <typename T>
  ValueId constant(std::string name, std::span<const std::int64_t> dims, std::span<const T> elements);
  ValueId scalar(float value);
  /// A 1-D constant.
  ValueId integers(std::span<const std::int64_t> elements);
  void output(std::string name, ValueId value) { graph_.outputs.push_back({std::move(name), value}); }

  /// Appends a node (or folds it). `inputs` may contain kNone. Returns op.outputs values.
  Result<std::vector<ValueId>> emit(const ops::OpDef& op, Params params, std::vector<ValueId> inputs,
                                    const std::string& output_name = {});
  /// emit() for operators with one result.
  Result<ValueId> emit1(const ops::OpDef& op, Params params, std::vector<ValueId> inputs,
                        const std::string& output_name = {});
  template <typename P>
  Result<ValueId> emit1(const ops::OpDef& op, const P& params, std::vector<ValueId> inputs,
                        const std::string& output_name = {}) {
    return emit1(op, Params::of(params), std::move(inputs), output_name);
  }

  /// Appends a node with bodies (graph/control.h): the results are what its bodies give. Never folds.
  Result<std::vector<ValueId>> emit_control(const ops::OpDef& op, Params params, std::vector<ValueId> inputs,
                                            std::vector<Graph> bodies);

  // Frequent emissions. All fold when their operand is constant; all return the operand itself when nothing changes.
  Result<ValueId> transpose(ValueId x, std::span<const int> perm);
  Result<ValueId> reshape(ValueId x, std::span<const std::int64_t> dims);
  Result<ValueId> cast(ValueId x, ElementType to);

 private:
  struct FoldingBudget {
    std::int64_t bytes = 0;
    std::int64_t work = 0;
  };

  /// True when the node may be folded within the limits on memory and work, which it then counts against.
  bool spend_folding(const ops::OpDef& op, const Node& node, const OperandTables& tables,
                     std::span<const TensorDesc> descs);

  Graph& graph_;
  std::string source_name_;
  std::string origin_;
  std::shared_ptr<FoldingBudget> budget_;  ///< spent so far
};

/// Element type of a C++ arithmetic type.
template <typename T>
constexpr ElementType element_type_of() {
  if constexpr (std::is_same_v<T, float>) return ElementType::kF32;
  if constexpr (std::is_same_v<T, double>) return ElementType::kF64;
  if constexpr (std::is_same_v<T, bool>) return ElementType::kBool;
  if constexpr (std::is_same_v<T, std::int8_t>) return ElementType::kI8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return ElementType::kU8;
  if constexpr (std::is_same_v<T, std::int16_t>) return ElementType::kI16;
  if constexpr (std::is_same_v<T, std::uint16_t>) return ElementType::kU16;
  if constexpr (std::is_same_v<T, std::int32_t>) return ElementType::kI32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return ElementType::kU32;
  if constexpr (std::is_same_v<T, std::int64_t>) return ElementType::kI64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return ElementType::kU64;
  return ElementType::kNone;
}

template <typename T>
ValueId Builder::constant(std::string name, std::span<const std::int64_t> dims, std::span<const T> elements) {
  TensorDesc d;
  d.type = element_type_of<T>();
  d.rank = static_cast<std::uint8_t>(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) d.dims[i] = static_cast<std::int32_t>(dims[i]);
  d.set_dense_strides();
  auto owner = std::make_shared<std::vector<std::byte>>(elements.size_bytes());
  if (!elements.empty()) std::memcpy(owner->data(), elements.data(), elements.size_bytes());
  const std::span<const std::byte> bytes(*owner);
  return constant(std::move(name), d, bytes, std::move(owner));
}

/// Evaluates an operator whose operands are all constant with its reference kernel. Result bytes are dense.
Result<std::vector<Constant>> evaluate(const ops::OpDef& op, const Params& params, std::span<const Tensor> inputs,
                                       std::span<const TensorDesc> outputs);

}  // namespace bantam::graph
