#include "import/testing/onnx_writer.h"

#include <memory>
#include <protozero/pbf_writer.hpp>

#include "import/onnx/fields.h"
#include "import/onnx/model.h"

namespace bantam::import::testing {
namespace {

namespace field = onnx::field;
using Kind = onnx::AttributeProto::Kind;
using protozero::pbf_writer;

/// An AttributeProto whose value `write` adds.
template <typename Write>
std::string attribute(std::string_view name, Kind kind, Write&& write) {
  std::string bytes;
  pbf_writer w(bytes);
  w.add_string(field::attribute::kName, name.data(), name.size());
  write(w);
  w.add_int32(field::attribute::kType, static_cast<std::int32_t>(kind));
  return bytes;
}

}  // namespace

std::string attr(std::string_view name, std::int64_t value) {
  return attribute(name, Kind::kInt, [&](pbf_writer& w) { w.add_int64(field::attribute::kInt, value); });
}

std::string attr(std::string_view name, int value) { return attr(name, std::int64_t{value}); }

std::string attr(std::string_view name, float value) {
  return attribute(name, Kind::kFloat, [&](pbf_writer& w) { w.add_float(field::attribute::kFloat, value); });
}

std::string attr(std::string_view name, std::string_view value) {
  return attribute(name, Kind::kString,
                   [&](pbf_writer& w) { w.add_string(field::attribute::kString, value.data(), value.size()); });
}

std::string attr(std::string_view name, const char* value) { return attr(name, std::string_view(value)); }

std::string attr(std::string_view name, const std::vector<std::int64_t>& values) {
  return attribute(name, Kind::kInts,
                   [&](pbf_writer& w) { w.add_packed_int64(field::attribute::kInts, values.begin(), values.end()); });
}

std::string attr(std::string_view name, const std::vector<float>& values) {
  return attribute(name, Kind::kFloats,
                   [&](pbf_writer& w) { w.add_packed_float(field::attribute::kFloats, values.begin(), values.end()); });
}

std::string attr(std::string_view name, const std::vector<std::string>& values) {
  return attribute(name, Kind::kStrings, [&](pbf_writer& w) {
    for (const std::string& value : values) w.add_string(field::attribute::kStrings, value);
  });
}

std::string tensor_attr(std::string_view name, const std::string& tensor) {
  return attribute(name, Kind::kTensor, [&](pbf_writer& w) { w.add_message(field::attribute::kTensor, tensor); });
}

std::string graph_attr(std::string_view name, const std::string& graph) {
  return attribute(name, Kind::kGraph, [&](pbf_writer& w) { w.add_message(field::attribute::kGraph, graph); });
}

std::int32_t onnx_code(ElementType type) {
  constexpr std::int32_t kLargestCode = 32;
  for (std::int32_t code = 1; code < kLargestCode; ++code)
    if (onnx::element_type(code) == type) return code;
  return 0;
}

std::string raw_tensor(std::string_view name, ElementType type, const std::vector<std::int64_t>& dims,
                       std::string_view raw) {
  return coded_tensor(name, onnx_code(type), dims, raw);
}

std::string coded_tensor(std::string_view name, std::int32_t code, const std::vector<std::int64_t>& dims,
                         std::string_view raw) {
  std::string bytes;
  pbf_writer w(bytes);
  w.add_packed_int64(field::tensor::kDims, dims.begin(), dims.end());
  w.add_int32(field::tensor::kDataType, code);
  w.add_string(field::tensor::kName, name.data(), name.size());
  w.add_bytes(field::tensor::kRawData, raw.data(), raw.size());
  return bytes;
}

std::string external_tensor(std::string_view name, ElementType type, const std::vector<std::int64_t>& dims,
                            const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string bytes;
  pbf_writer w(bytes);
  w.add_packed_int64(field::tensor::kDims, dims.begin(), dims.end());
  w.add_int32(field::tensor::kDataType, onnx_code(type));
  w.add_string(field::tensor::kName, name.data(), name.size());
  for (const auto& [key, value] : entries) {
    pbf_writer entry(w, field::tensor::kExternalData);
    entry.add_string(field::entry::kKey, key);
    entry.add_string(field::entry::kValue, value);
  }
  w.add_int32(field::tensor::kDataLocation, 1);
  return bytes;
}

GraphWriter& GraphWriter::input(std::string_view name, const std::vector<Dim>& dims, ElementType type) {
  // Messages are added as strings because a nested writer leaves out empty ones: scalars and nameless dimensions.
  std::string shape;
  for (const Dim& dim : dims) {
    std::string entry;
    if (const auto* value = std::get_if<std::int64_t>(&dim)) pbf_writer(entry).add_int64(field::dim::kValue, *value);
    if (const auto* symbol = std::get_if<std::string>(&dim); symbol != nullptr && !symbol->empty())
      pbf_writer(entry).add_string(field::dim::kParam, *symbol);
    pbf_writer(shape).add_message(field::shape::kDim, entry);
  }
  std::string tensor_type;
  pbf_writer(tensor_type).add_int32(field::tensor_type::kElementType, onnx_code(type));
  pbf_writer(tensor_type).add_message(field::tensor_type::kShape, shape);
  std::string type_proto;
  pbf_writer(type_proto).add_message(field::type::kTensorType, tensor_type);
  std::string info;
  pbf_writer(info).add_string(field::value_info::kName, name.data(), name.size());
  pbf_writer(info).add_message(field::value_info::kType, type_proto);
  pbf_writer(graph_).add_message(field::graph::kInput, info);
  return *this;
}

GraphWriter& GraphWriter::output(std::string_view name, ElementType type) {
  pbf_writer graph(graph_);
  pbf_writer info(graph, field::graph::kOutput);
  info.add_string(field::value_info::kName, name.data(), name.size());
  pbf_writer type_proto(info, field::value_info::kType);
  pbf_writer tensor_type(type_proto, field::type::kTensorType);
  tensor_type.add_int32(field::tensor_type::kElementType, onnx_code(type));
  return *this;
}

GraphWriter& GraphWriter::initializer(const std::string& tensor) {
  pbf_writer(graph_).add_message(field::graph::kInitializer, tensor);
  return *this;
}

GraphWriter& GraphWriter::node(std::string_view op, const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs, const std::vector<std::string>& attributes,
                               std::string_view name, std::string_view domain) {
  pbf_writer graph(graph_);
  pbf_writer w(graph, field::graph::kNode);
  for (const std::string& input : inputs) w.add_string(field::node::kInput, input);
  for (const std::string& output : outputs) w.add_string(field::node::kOutput, output);
  if (!name.empty()) w.add_string(field::node::kName, name.data(), name.size());
  w.add_string(field::node::kOpType, op.data(), op.size());
  for (const std::string& attribute : attributes) w.add_message(field::node::kAttribute, attribute);
  if (!domain.empty()) w.add_string(field::node::kDomain, domain.data(), domain.size());
  if (!domain.empty()) domains_.emplace(domain);
  return *this;
}

std::string GraphWriter::model(std::int64_t opset) const {
  std::string bytes;
  pbf_writer w(bytes);
  w.add_int64(field::model::kIrVersion, 8);
  w.add_string(field::model::kProducerName, "test");
  w.add_message(field::model::kGraph, graph_);
  {
    pbf_writer entry(w, field::model::kOpsetImport);
    entry.add_int64(field::opset::kVersion, opset);
  }
  for (const std::string& domain : domains_) {
    pbf_writer entry(w, field::model::kOpsetImport);
    entry.add_string(field::opset::kDomain, domain);
    entry.add_int64(field::opset::kVersion, 1);
  }
  {
    pbf_writer entry(w, field::model::kMetadata);
    entry.add_string(field::entry::kKey, "purpose");
    entry.add_string(field::entry::kValue, "a test");
  }
  return bytes;
}

Source source_of(const std::string& bytes, std::filesystem::path directory) {
  auto owner = std::make_shared<std::string>(bytes);
  return {"test.onnx", std::as_bytes(std::span(*owner)), owner, std::move(directory)};
}

}  // namespace bantam::import::testing
