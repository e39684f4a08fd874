#include "peer/onnx_rewrite.h"

#include <exception>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <set>
#include <string_view>

#include "import/onnx/fields.h"

namespace bantam::peer {
namespace {

namespace field = import::onnx::field;
using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;

std::string_view text(const protozero::data_view& view) { return {view.data(), view.size()}; }

/// The first string field of that number in a message, or nothing.
std::string_view string_field(pbf_reader message, std::uint32_t number) {
  if (message.next(number, pbf_wire_type::length_delimited)) return text(message.get_view());
  return {};
}

/// Copies the field that `reader` stands at.
void copy_field(pbf_reader& reader, pbf_writer& writer) {
  const auto tag = reader.tag();
  switch (reader.wire_type()) {
    case pbf_wire_type::varint: writer.add_uint64(tag, reader.get_uint64()); break;
    case pbf_wire_type::fixed64: writer.add_fixed64(tag, reader.get_fixed64()); break;
    case pbf_wire_type::length_delimited: writer.add_bytes(tag, reader.get_view()); break;
    case pbf_wire_type::fixed32: writer.add_fixed32(tag, reader.get_fixed32()); break;
    case pbf_wire_type::unknown: reader.skip(); break;
  }
}

std::string fix_graph(const protozero::data_view& graph) {
  std::set<std::string_view> initializers;
  for (pbf_reader reader(graph); reader.next(field::graph::kInitializer, pbf_wire_type::length_delimited);)
    initializers.insert(string_field(reader.get_message(), field::tensor::kName));
  std::string out;
  pbf_writer writer(out);
  for (pbf_reader reader(graph); reader.next();) {
    if (reader.tag_and_type() == protozero::tag_and_type(field::graph::kInput, pbf_wire_type::length_delimited)) {
      const protozero::data_view input = reader.get_view();
      if (!initializers.contains(string_field(pbf_reader(input), field::value_info::kName)))
        writer.add_bytes(field::graph::kInput, input);
    } else {
      copy_field(reader, writer);
    }
  }
  return out;
}

std::string expose_tensors(const protozero::data_view& graph) {
  std::set<std::string_view> known;
  for (pbf_reader reader(graph); reader.next(field::graph::kOutput, pbf_wire_type::length_delimited);)
    known.insert(string_field(reader.get_message(), field::value_info::kName));
  std::string out(graph.data(), graph.size());
  pbf_writer writer(out);
  for (pbf_reader reader(graph); reader.next(field::graph::kNode, pbf_wire_type::length_delimited);) {
    for (pbf_reader node = reader.get_message(); node.next(field::node::kOutput, pbf_wire_type::length_delimited);) {
      const protozero::data_view name = node.get_view();
      if (name.size() == 0 || !known.insert(text(name)).second) continue;
      pbf_writer output(writer, field::graph::kOutput);
      output.add_bytes(field::value_info::kName, name);
    }
  }
  return out;
}

/// The model with its graph replaced by rewrite(graph).
template <typename F>
Result<std::string> rewrite_graph(std::span<const std::byte> model, F&& rewrite) {
  // protozero reports damaged bytes by exception; it ends here.
  try {
    std::string out;
    pbf_writer writer(out);
    const protozero::data_view bytes(reinterpret_cast<const char*>(model.data()), model.size());
    for (pbf_reader reader(bytes); reader.next();) {
      if (reader.tag_and_type() == protozero::tag_and_type(field::model::kGraph, pbf_wire_type::length_delimited))
        writer.add_bytes(field::model::kGraph, rewrite(reader.get_view()));
      else
        copy_field(reader, writer);
    }
    return out;
  } catch (const std::exception& e) {
    return fail(StatusCode::kInvalidModel, std::string("not an ONNX model: ") + e.what(), "give an ONNX model");
  }
}

}  // namespace

Result<std::string> with_fixed_initializers(std::span<const std::byte> model) {
  return rewrite_graph(model, fix_graph);
}

Result<std::string> with_exposed_tensors(std::span<const std::byte> model) {
  return rewrite_graph(model, expose_tensors);
}

}  // namespace bantam::peer
