// The graph: a model on the host, between importer and plan.
//
// Importers produce it, passes rewrite it, the compiler turns it into a package. It is in static single assignment
// form: every value has one producer (a node, an input, a state or a constant). Nodes are kept in a valid execution
// order. Values and nodes are named by index; indices of removed objects are not reused until `compact`.
// Ownership: the graph owns its tables; constants refer to bytes that a shared owner keeps alive (a mapped model file,
// or a buffer made by folding), so weights are never copied. Thread rule: a graph belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bantam/error.h"
#include "bantam/tensor.h"
#include "ops/op.h"

namespace bantam::graph {

using ValueId = std::int32_t;
using NodeId = std::int32_t;
inline constexpr std::int32_t kNone = -1;       ///< an absent operand or result, no producer
inline constexpr std::int32_t kAddedAxis = -1;  ///< see Value::layout

/// Bytes of a constant, dense and little endian, of any alignment. `owner` keeps them alive.
struct Constant {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// The integers that an f32 constant was dequantised from, in the constant's own shape: element i is
/// (integers[i] - zero_point) * scale. With several scales, slice j along `axis` has scale j; or, where `block` is not
/// 0, scales have the constant's rank and each holds for so many elements along `axis`.
struct QuantizedSource {
  Constant integers;
  ElementType type = ElementType::kNone;
  std::vector<float> scales;
  std::vector<std::int32_t> zero_points;  ///< as many as scales
  int axis = 0;
  std::int64_t block = 0;
};

struct Value {
  std::string name;  ///< as in the model where it has one; unique is not required
  /// The named tensor's axes in their order here, where passes have turned it or given it axes of one element, which
  /// are kAddedAxis; empty: as there.
  ops::IntList layout;
  TensorDesc desc;  ///< dense
  std::optional<Constant> constant;
  std::shared_ptr<const QuantizedSource> quantized_source;  ///< of constants, kept for passes that compute in integers
  std::optional<Quantization> quantization;  ///< per-tensor, informative: arithmetic lives in operator parameters
  NodeId producer = kNone;
};

/// Operator parameters by value, laid out as the operator's parameter struct.
class Params {
 public:
  Params() = default;
  /// A copy of the operator's defaults.
  explicit Params(const ops::OpDef& op)
      : bytes_(static_cast<const std::byte*>(op.default_params),
               static_cast<const std::byte*>(op.default_params) + op.params_bytes) {}

  template <typename P>
  static Params of(const P& params) {
    static_assert(std::is_trivially_copyable_v<P>);
    Params result;
    result.bytes_.resize(sizeof(P));
    std::memcpy(result.bytes_.data(), &params, sizeof(P));
    return result;
  }
  /// Requires that P is the operator's parameter struct.
  template <typename P>
  P& as() noexcept {
    return *reinterpret_cast<P*>(bytes_.data());
  }
  template <typename P>
  const P& as() const noexcept {
    return *reinterpret_cast<const P*>(bytes_.data());
  }
  const std::byte* data() const noexcept { return bytes_.data(); }
  std::byte* data() noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return bytes_.size(); }
  bool operator==(const Params& other) const noexcept { return bytes_ == other.bytes_; }

 private:
  std::vector<std::byte> bytes_;  // operator new aligns to 16, parameters need 4
};

struct Graph;

struct Node {
  const ops::OpDef* op = nullptr;  ///< null marks a removed node
  Params params;
  std::string name;              ///< the model's node name, or derived from its output
  std::string origin;            ///< the source operator(s), e.g. "Conv" or "Conv+Relu"; for messages and reports
  std::vector<ValueId> inputs;   ///< kNone for absent optional operands
  std::vector<ValueId> outputs;  ///< kNone for results nobody wants; the op still has op->outputs of them
  std::vector<Graph> bodies;     ///< of control flow only, see graph/control.h
  /// Of the operator's, what computes the node wherever it supports the call. Null: the compiler chooses.
  const ops::KernelVariant* kernel = nullptr;

  template <typename P>
  const P& as() const noexcept {
    return params.as<P>();
  }
  bool is(const ops::OpDef& def) const noexcept { return op == &def; }
};

/// A named input or output of the model.
struct Port {
  std::string name;
  ValueId value = kNone;
};

/// A value that survives from one invoke to the next: `in` is read as it was when the invoke began, `out` is what the
/// next invoke will read. `in` has no producer; same shape and type. Starts as `initial`, or zero.
struct State {
  std::string name;
  ValueId in = kNone;
  ValueId out = kNone;
  std::optional<Constant> initial;
};

/// A size that the graph computes from data: while it runs, the dimension of that name takes the number that `value`,
/// an i32 or i64 with one element, then holds. Importers gave the graph the shapes that it has at one such number; what
/// else follows it shows by looking at several (compiler/sized_model.h).
struct MeasuredSize {
  std::string name;
  ValueId value = kNone;
  std::int64_t bound = 0;  ///< the largest number that the graph can count with
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  ///< in execution order
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<State> states;
  std::vector<MeasuredSize> measured;
  /// Key/value pairs the model file carries (ONNX metadata_props, TFLite metadata names).
  std::vector<std::pair<std::string, std::string>> metadata;

  Value& value(ValueId id) { return values[static_cast<std::size_t>(id)]; }
  const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
  Node& node(NodeId id) { return nodes[static_cast<std::size_t>(id)]; }
  const Node& node(NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }
  bool is_constant(ValueId id) const { return id != kNone && value(id).constant.has_value(); }

  ValueId add_value(Value v) {
    values.push_back(std::move(v));
    return static_cast<ValueId>(values.size()) - 1;
  }
};

/// "f32[1,3,320,320]"; "f32[]" for a scalar.
std::string format_desc(const TensorDesc& desc);

/// Of all constants of the graph, without those of bodies.
std::int64_t constant_bytes(const Graph& graph);

/// Elements of a constant as T, converted by value. Empty when `id` is not a constant of an integer or f32 type.
std::optional<std::vector<std::int64_t>> constant_integers(const Graph& graph, ValueId id);
std::optional<std::vector<float>> constant_floats(const Graph& graph, ValueId id);

/// Who reads each value: pairs of (node, operand index). Built once per pass; outputs and states count separately.
class Uses {
 public:
  struct Use {
    NodeId node;
    std::int32_t operand;
  };
  explicit Uses(const Graph& graph);
  std::span<const Use> of(ValueId id) const { return uses_[static_cast<std::size_t>(id)]; }
  /// True when something outside the nodes reads the value (for_each_result).
  bool is_external(ValueId id) const { return external_[static_cast<std::size_t>(id)]; }
  /// The only reader of `id`, when there is exactly one and the value is not external.
  std::optional<Use> only(ValueId id) const;

 private:
  std::vector<std::vector<Use>> uses_;
  std::vector<bool> external_;
};

/// Calls visit(id) for the values that are read from outside the nodes: outputs, next values of states, measured sizes.
template <typename AnyGraph, typename Visit>
void for_each_result(AnyGraph& graph, Visit&& visit) {
  for (auto& port : graph.outputs) visit(port.value);
  for (auto& state : graph.states)
    if (state.out != kNone) visit(state.out);
  for (auto& size : graph.measured) visit(size.value);
}

/// Makes every reader of `from` (nodes, outputs, states, measured sizes) read `to` instead.
void replace_uses(Graph& graph, ValueId from, ValueId to);

/// Drops removed nodes and values that nothing refers to, renumbering both.
void compact(Graph& graph);

/// Reorders nodes so that producers precede readers, otherwise keeping their order. Fails on a cycle, naming a node.
Result<void> sort_topologically(Graph& graph);

/// Operand tables for the operator interface: tensors whose data is set for constants. Valid while `graph` lives
/// unchanged. Absent operands point at a shared desc of type kNone. Constants of at most kAlignedConstantBytes (all
/// that an `infer` ever reads) are aligned for their element type; larger ones lie where the model file has them.
inline constexpr std::size_t kAlignedConstantBytes = 4096;
struct OperandTables {
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::vector<std::unique_ptr<std::byte[]>> aligned_copies;

  ops::OpCall call(const Node& node) const { return {node.params.data(), inputs, outputs}; }
};
OperandTables operand_tables(const Graph& graph, const Node& node);

/// Checks everything a pass relies on: one producer each, order, types and shapes as `infer` says, states matching,
/// constants of the right size, bodies that fit their nodes. An Error names the node.
Result<void> verify(const Graph& graph);
/// The same for a graph with so many bodies around it.
Result<void> verify_body(const Graph& graph, int depth);

}  // namespace bantam::graph
