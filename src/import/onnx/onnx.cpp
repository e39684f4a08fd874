// The two entry points for ONNX: import_onnx and declare_onnx.
#include <fmt/format.h>

#include <map>

#include "import/import.h"
#include "import/onnx/importer.h"
#include "import/onnx/model.h"
#include "import/onnx/ports.h"

namespace bantam::import {
namespace {

using namespace onnx;

DeclaredPort declared_port(const ValueInfo& info) {
  DeclaredPort port;
  port.name = std::string(info.name);
  port.type = element_type(info.data_type);
  if (!info.shape) {
    port.dims.emplace_back("...");
    return port;
  }
  for (const Dimension& d : *info.shape) {
    if (d.value && *d.value >= 0) {
      port.dims.push_back(std::to_string(*d.value));
    } else {
      port.dims.push_back(d.symbol.empty() ? "?" : std::string(d.symbol));
    }
  }
  return port;
}

/// Counts operators of a graph and of the graphs inside it; depth is bounded by the reader.
void count_operators(const GraphProto& graph, std::map<std::string, std::int64_t>& counts) {
  for (const NodeProto& node : graph.nodes) {
    ++counts[node.domain.empty() ? std::string(node.op_type) : fmt::format("{}:{}", node.domain, node.op_type)];
    for (const AttributeProto& attribute : node.attributes)
      if (attribute.graph) count_operators(*attribute.graph, counts);
  }
}

std::string describe_version(const ModelProto& model) {
  std::string text = fmt::format("opset {}", model.opset(""));
  for (const auto& [domain, version] : model.opsets)
    if (!domain.empty()) text += fmt::format(", {} {}", printable(domain), version);
  return text + fmt::format(", IR {}", model.ir_version);
}

Result<ModelProto> read(const Source& source) {
  return read_model(source.bytes).map_error([&](Error&& error) { return std::move(error).in(source.name); });
}

}  // namespace

Result<graph::Graph> import_onnx(const Source& source, const Options& options) {
  auto model = read(source);
  if (!model) return fail(std::move(model.error()));
  auto graph = Importer(source, *model, options).run();
  if (!graph) return fail(std::move(graph.error()).in(source.name));
  return graph;
}

Result<Declaration> declare_onnx(const Source& source) {
  auto model = read(source);
  if (!model) return fail(std::move(model.error()));
  Declaration result;
  result.format = "ONNX";
  result.version = describe_version(*model);
  result.producer = model->producer;
  for (const ValueInfo* input : real_inputs(model->graph)) result.inputs.push_back(declared_port(*input));
  for (const ValueInfo& output : model->graph.outputs) result.outputs.push_back(declared_port(output));
  std::map<std::string, std::int64_t> counts;
  count_operators(model->graph, counts);
  result.operators.assign(counts.begin(), counts.end());
  for (const auto& [key, value] : model->metadata) result.metadata.emplace_back(key, value);
  return result;
}

}  // namespace bantam::import
