// The driver of an ONNX import: walks graphs in order, lowers node by node, and collects findings. Single use.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "import/import.h"
#include "import/onnx/counts.h"
#include "import/onnx/lowering.h"
#include "import/onnx/measured.h"
#include "import/onnx/order.h"

namespace bantam::import::onnx {

class Importer {
 public:
  Importer(const Source& source, const ModelProto& model, const Options& options)
      : model_(model),
        options_(options),
        constants_(source),
        builder_(graph_),
        counts_(builder_),
        measured_(builder_, options) {}

  Result<graph::Graph> run();

  const ModelProto& model() const noexcept { return model_; }
  graph::Builder& builder() noexcept { return builder_; }
  Findings& findings() noexcept { return findings_; }
  ConstantReader& constants() noexcept { return constants_; }
  LargestCounts& counts() noexcept { return counts_; }
  MeasuredSizes& measured() noexcept { return measured_; }

  /// A constant of the graph. What was stored in 4 bits is remembered: its numbers have that range.
  ValueId add_constant(std::string name, const TensorConstant& constant);
  bool is_nibbles(ValueId id) const { return nibbles_.contains(id); }

  /// Lowers the nodes that `graph` needs in a scope of its own and returns its outputs, kUnknown where one failed.
  std::vector<ValueId> lower_graph(const GraphProto& graph, const Scope* outer);

 private:
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
  graph::Graph graph_;
  graph::Builder builder_;
  LargestCounts counts_;
  MeasuredSizes measured_;
  std::set<ValueId> nibbles_;
  Findings findings_;
  std::set<std::string, std::less<>> values_used_;  ///< names of Options::values that were found
};

}  // namespace bantam::import::onnx
