// The driver of an ONNX import: walks graphs in order, lowers node by node, and collects findings. Single use.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "import/import.h"
#include "import/onnx/body.h"
#include "import/onnx/lowering.h"
#include "import/onnx/order.h"

namespace bantam::import::onnx {

class Importer {
 public:
  Importer(const Source& source, const ModelProto& model, const Options& options)
      : model_(model), options_(options), constants_(source), model_frame_(options) {}

  Result<graph::Graph> run();

  const ModelProto& model() const noexcept { return model_; }
  const Options& options() const noexcept { return options_; }
  /// Of the graph that nodes are lowered into at present.
  Frame& frame() noexcept { return *frame_; }
  graph::Builder& builder() noexcept { return frame_->builder(); }
  Findings& findings() noexcept { return findings_; }
  ConstantReader& constants() noexcept { return constants_; }
  LargestCounts& counts() noexcept { return frame_->counts(); }
  MeasuredSizes& measured() noexcept { return frame_->measured(); }

  /// A constant of the graph. What was stored in 4 bits is remembered: its numbers have that range.
  ValueId add_constant(std::string name, const TensorConstant& constant);
  bool is_nibbles(ValueId id) const { return frame_->is_nibbles(id); }

  /// Loops inside one another must not unroll without end.
  bool spend_unrolling(std::int64_t nodes) {
    unrolled_nodes_ += nodes;
    return unrolled_nodes_ <= kMaxUnrolledNodes;
  }
  /// Options::iterations of that node.
  std::optional<std::int64_t> given_iterations(const std::string& node);
  /// Lowers the nodes that `graph` needs in a scope of its own and returns its outputs, kUnknown where one failed.
  std::vector<ValueId> lower_graph(const GraphProto& graph, const Scope* outer) {
    return lower_graph(graph, outer, {});
  }
  /// The same with these values for its inputs.
  std::vector<ValueId> lower_graph(const GraphProto& graph, const Scope* outer, std::span<const ValueId> inputs);
  /// The same into `frame`, which the values belong to.
  std::vector<ValueId> lower_body(const GraphProto& graph, const Scope& outer, Frame& frame,
                                  std::span<const ValueId> inputs);

 private:
  static constexpr std::int64_t kMaxUnrolledNodes = 1 << 16;

  std::vector<ValueId> lower_in_scope(const GraphProto& graph, Scope& scope, std::span<const ValueId> inputs);
  void add_inputs(Scope& scope);
  /// A port's value in another type: 16-bit floats end at the ports.
  ValueId converted(ValueId id, ElementType type);
  void add_counts(const std::vector<const ValueInfo*>& inputs, std::span<const TensorDesc> descs, const Scope& scope);
  void add_initializers(const GraphProto& graph, const std::unordered_set<std::string_view>& used, Scope& scope);
  std::vector<ValueId> lower_nodes(const GraphProto& graph, const NodeOrder& order, Scope& scope);
  void lower_node(const NodeProto& node, const std::unordered_set<std::string_view>& used, Scope& scope);
  void bind_results(const NodeLowering& lowering, Scope& scope);
  void bind_outputs(std::vector<ValueId> outputs);
  void check_option_names();

  const ModelProto& model_;
  const Options& options_;
  ConstantReader constants_;
  std::int64_t unrolled_nodes_ = 0;
  Frame model_frame_;
  Frame* frame_ = &model_frame_;
  Findings findings_;
  std::set<std::string, std::less<>> values_used_;      ///< names of Options::values that were found
  std::set<std::string, std::less<>> iterations_used_;  ///< names of Options::iterations that were asked for
};

}  // namespace bantam::import::onnx
