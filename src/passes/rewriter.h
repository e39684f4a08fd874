// Rewriter: the sweep that peephole passes share.
//
// A sweep walks the nodes in execution order and builds the node list anew. A rule sees one node, whose operands name
// final values, looks backward at producers, and either keeps the node or gives a value that replaces its result,
// usually that of nodes it emitted just before. New nodes thus always follow their operands, a chain collapses in one
// sweep, and a sweep costs O(nodes + operands). Readers are counted as the graph changes; a node whose last reader goes
// away is removed at once, so that `only_reader` holds for chains. Single-threaded; used by one pass at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "graph/graph.h"
#include "ops/elementwise/binary/binary.h"

namespace bantam::passes {

class Rewriter {
 public:
  /// Gives the value that replaces the node's only result, or nothing to keep the node. Pointers to nodes and values
  /// stay valid within one call of a rule, which emits at most kMaxEmitted nodes and constants.
  using Rule = std::function<std::optional<graph::ValueId>(Rewriter&, const graph::Node&)>;
  static constexpr std::size_t kMaxEmitted = 64;

  explicit Rewriter(graph::Graph& graph);

  /// One sweep, then removal of dead nodes. Returns whether the rule replaced anything.
  Result<bool> sweep(const Rule& rule);

  const graph::Graph& graph() const { return graph_; }
  const graph::Value& value(graph::ValueId id) const { return graph_.value(id); }
  const TensorDesc& desc(graph::ValueId id) const { return graph_.value(id).desc; }

  /// The node that produces `id` with operator `op`, or null.
  const graph::Node* producer(graph::ValueId id, const ops::OpDef& op) const;
  const graph::Node* producer(graph::ValueId id) const;
  /// True when exactly one node, port or state reads `id`.
  bool only_reader(graph::ValueId id) const { return readers(id) == 1; }
  /// The node (with operator `op`) that produces `id` for one reader, or null.
  const graph::Node* only_producer(graph::ValueId id) const { return only_reader(id) ? producer(id) : nullptr; }
  const graph::Node* only_producer(graph::ValueId id, const ops::OpDef& op) const {
    return only_reader(id) ? producer(id, op) : nullptr;
  }
  std::int32_t readers(graph::ValueId id) const { return uses_[static_cast<std::size_t>(id)]; }

  /// Appends a node, named after the node that the rule looks at; folds it when all operands are constant. Nothing when
  /// the operator refuses: the rule then keeps the node, and what it emitted before is removed as dead.
  std::optional<graph::ValueId> emit(const ops::OpDef& op, graph::Params params, std::vector<graph::ValueId> inputs);
  template <typename P>
  std::optional<graph::ValueId> emit(const ops::OpDef& op, const P& params, std::vector<graph::ValueId> inputs) {
    return emit(op, graph::Params::of(params), std::move(inputs));
  }
  /// emit() for operators with several results.
  std::optional<std::vector<graph::ValueId>> emit_all(const ops::OpDef& op, graph::Params params,
                                                      std::vector<graph::ValueId> inputs);
  /// What following nodes of this rule are said to come from, e.g. "Conv+Relu".
  void set_source(const std::string& name, const std::string& origin) { builder_.set_source(name, origin); }
  /// The same for `second` fused into `first`.
  void set_fused_source(const graph::Node& first, const graph::Node& second);

  std::optional<graph::ValueId> reshape(graph::ValueId x, const TensorDesc& like);
  std::optional<graph::ValueId> transpose(graph::ValueId x, std::span<const int> perm);
  /// A constant over bytes that something keeps alive already; `desc` is made dense.
  graph::ValueId constant(const TensorDesc& desc, const graph::Constant& data) {
    const graph::ValueId id = builder_.constant("", desc, data.bytes, data.owner);
    uses_.resize(graph_.values.size(), 0);
    return id;
  }
  template <typename T>
  graph::ValueId constant(std::span<const std::int64_t> dims, std::span<const T> elements) {
    const graph::ValueId id = builder_.constant<T>("", dims, elements);
    uses_.resize(graph_.values.size(), 0);
    return id;
  }

 private:
  void reserve();
  void replace(const graph::Node& node, graph::ValueId by);
  void drop_use(graph::ValueId id);
  bool unread(const graph::Node& node) const;

  graph::Graph& graph_;
  graph::Builder builder_;
  std::vector<std::int32_t> uses_;           ///< readers by value, under all replacements so far
  std::vector<graph::ValueId> replacement_;  ///< by value: itself, or what readers read instead
  std::vector<bool> external_;
};

/// Is the node that function of two operands, and no activation of it?
bool is_plain_binary(const graph::Node& node, ops::BinaryFunction function);
/// The node that produces `id`, if it is one; or null.
const graph::Node* plain_binary(const Rewriter& rewriter, graph::ValueId id, ops::BinaryFunction function);

/// The one value of all elements of a non-empty f32 constant.
std::optional<float> splat(const graph::Graph& graph, graph::ValueId id);
/// The same for integers and bool.
std::optional<std::int64_t> integer_splat(const graph::Graph& graph, graph::ValueId id);
/// True when every element of a constant of any arithmetic type is `number`.
bool is_splat(const graph::Graph& graph, graph::ValueId id, int number);

/// The dimensions of a desc as the builder wants them.
std::vector<std::int64_t> dims_of(const TensorDesc& desc);

}  // namespace bantam::passes
