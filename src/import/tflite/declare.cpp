#include <fmt/format.h>

#include <map>

#include "import/import.h"
#include "import/tflite/model_file.h"

namespace bantam::import {
namespace {

using tflite::count;

DeclaredPort declare_port(const tflite::schema::Tensor& tensor, std::string_view kind, std::size_t position) {
  DeclaredPort port;
  port.name = tflite::port_name(tensor, kind, position);
  port.type = tflite::element_type(tensor.type());
  port.quantization = tflite::port_quantization(tensor);
  const auto shape = tflite::integers(tensor.shape());
  const auto signature = tflite::integers(tensor.shape_signature());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool open = shape[i] < 0 || (i < signature.size() && signature[i] < 0);
    port.dims.push_back(open ? "?" : std::to_string(shape[i]));
  }
  return port;
}

std::vector<DeclaredPort> declare_ports(const tflite::schema::SubGraph& graph,
                                        const flatbuffers::Vector<std::int32_t>* tensors, std::string_view kind) {
  std::vector<DeclaredPort> ports;
  for (std::uint32_t i = 0; i < count(tensors); ++i) {
    const auto tensor = static_cast<std::uint32_t>(tensors->Get(i));  // a negative index is out of range too
    if (tensor < count(graph.tensors())) ports.push_back(declare_port(*graph.tensors()->Get(tensor), kind, i));
  }
  return ports;
}

}  // namespace

Result<Declaration> declare_tflite(const Source& source) {
  auto file = tflite::ModelFile::open(source);
  if (!file) return fail(std::move(file.error()));
  const tflite::schema::Model& model = file->model();
  Declaration declaration;
  declaration.format = "TFLite";
  declaration.version = fmt::format("schema {}", model.version());
  declaration.producer = tflite::text(model.description());
  if (count(model.subgraphs()) > 0) {
    const tflite::schema::SubGraph& main = *model.subgraphs()->Get(0);
    declaration.inputs = declare_ports(main, main.inputs(), "in");
    declaration.outputs = declare_ports(main, main.outputs(), "out");
  }
  std::map<std::string, std::int64_t> operators;
  for (std::uint32_t g = 0; g < count(model.subgraphs()); ++g) {
    const auto* nodes = model.subgraphs()->Get(g)->operators();
    for (std::uint32_t i = 0; i < count(nodes); ++i) {
      const std::uint32_t code = nodes->Get(i)->opcode_index();
      if (code < count(model.operator_codes())) ++operators[tflite::operator_name(*model.operator_codes()->Get(code))];
    }
  }
  declaration.operators.assign(operators.begin(), operators.end());
  declaration.metadata = file->metadata();
  return declaration;
}

}  // namespace bantam::import
