#include "thin_onnx.h"

#include <cstdint>
#include <exception>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <string_view>
#include <vector>

#include "import/onnx/fields.h"
#include "import/onnx/model.h"
#include "import/testing/onnx_writer.h"

namespace bantam::fuzz {
namespace {

namespace field = import::onnx::field;
using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_writer;

constexpr std::size_t kLargeBytes = 64;

struct Weights {
  std::string name;
  std::vector<std::int64_t> dims;
  std::int32_t type = 0;
  std::size_t bytes = 0;
};

Weights read_weights(pbf_reader tensor) {
  Weights weights;
  while (tensor.next()) {
    switch (tensor.tag()) {
      case field::tensor::kName: weights.name = tensor.get_string(); break;
      case field::tensor::kDataType: weights.type = tensor.get_int32(); break;
      case field::tensor::kRawData: weights.bytes = tensor.get_view().size(); break;
      case field::tensor::kDims:
        if (tensor.wire_type() == protozero::pbf_wire_type::varint) {
          weights.dims.push_back(tensor.get_int64());
        } else {
          for (const std::int64_t dim : tensor.get_packed_int64()) weights.dims.push_back(dim);
        }
        break;
      default: tensor.skip();
    }
  }
  return weights;
}

/// Copies the field that `message` stands at.
void copy_field(pbf_reader& message, pbf_writer& to) {
  const protozero::pbf_tag_type tag = message.tag();  // reading the value forgets it
  switch (message.wire_type()) {
    case protozero::pbf_wire_type::varint: to.add_uint64(tag, message.get_uint64()); break;
    case protozero::pbf_wire_type::fixed64: to.add_fixed64(tag, message.get_fixed64()); break;
    case protozero::pbf_wire_type::fixed32: to.add_fixed32(tag, message.get_fixed32()); break;
    default: {
      const data_view bytes = message.get_view();
      to.add_bytes(tag, bytes.data(), bytes.size());
    }
  }
}

std::string thin_graph(pbf_reader graph) {
  import::testing::GraphWriter constants;  // in front of the nodes that read them
  std::string rest;
  pbf_writer writer(rest);
  while (graph.next()) {
    if (graph.tag() != field::graph::kInitializer) {
      copy_field(graph, writer);
      continue;
    }
    const data_view bytes = graph.get_view();
    const Weights weights = read_weights(pbf_reader(bytes));
    const ElementType type = import::onnx::element_type(weights.type);
    if (weights.bytes < kLargeBytes || element_size(type) == 0) {
      writer.add_bytes(field::graph::kInitializer, bytes.data(), bytes.size());
      continue;
    }
    const std::string shape = weights.name + ".shape";
    constexpr char kFill = 0x3c;  // a small number in every type: about 0.01 in f32
    const std::string element(static_cast<std::size_t>(element_size(type)), kFill);
    constants.initializer(
        import::testing::tensor<std::int64_t>(shape, {static_cast<std::int64_t>(weights.dims.size())}, weights.dims));
    constants.node("ConstantOfShape", {shape}, {weights.name},
                   {import::testing::tensor_attr("value", import::testing::raw_tensor("", type, {1}, element))});
  }
  return constants.graph() + rest;
}

}  // namespace

std::string thin_onnx(std::span<const std::byte> model) {
  const std::string_view bytes(reinterpret_cast<const char*>(model.data()), model.size());
  std::string thin;
  // protozero's own exceptions; this is a tool of the tests.
  try {
    pbf_writer writer(thin);
    pbf_reader reader(data_view(bytes.data(), bytes.size()));
    while (reader.next()) {
      if (reader.tag() == field::model::kGraph) {
        writer.add_message(field::model::kGraph, thin_graph(reader.get_message()));
      } else {
        copy_field(reader, writer);
      }
    }
  } catch (const std::exception&) {
    return std::string(bytes);
  }
  return thin;
}

}  // namespace bantam::fuzz
