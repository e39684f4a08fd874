#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <protozero/pbf_reader.hpp>

#include "import/onnx/fields.h"
#include "import/onnx/model.h"

namespace bantam::import::onnx {
namespace {

using protozero::pbf_reader;
using protozero::tag_and_type;

constexpr auto kVarint = protozero::pbf_wire_type::varint;
constexpr auto kBytes = protozero::pbf_wire_type::length_delimited;
constexpr auto kFixed32 = protozero::pbf_wire_type::fixed32;

std::string_view canonical_domain(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

std::string_view text_of(const pbf_reader& m) { return {m.data().data(), m.length()}; }

/// Reads messages and counts what it makes. Fields are matched by number and wire type together; a known number with
/// another wire type is skipped like an unknown field, as protobuf prescribes. protozero's exceptions pass through.
class Reader {
 public:
  ModelProto model(pbf_reader m);
  TensorProto tensor(pbf_reader m);
  /// What limit the message exceeded; null when none. Reading stops early then and the result is incomplete.
  const char* exceeded() const { return exceeded_; }

 private:
  GraphProto graph(pbf_reader m, int depth);
  NodeProto node(pbf_reader m, int depth);
  AttributeProto attribute(pbf_reader m, int depth);
  ValueInfo value_info(pbf_reader m);
  void tensor_type(pbf_reader m, ValueInfo& info);
  std::vector<Dimension> shape(pbf_reader m);
  Dimension dimension(pbf_reader m);
  std::pair<std::string_view, std::string_view> entry(pbf_reader m);
  std::pair<std::string_view, std::int64_t> opset(pbf_reader m);

  bool next(pbf_reader& m) { return exceeded_ == nullptr && m.next(); }
  void count() {
    if (++objects_ > kMaxObjects) exceeded_ = "it has more nodes and tensors than any real model";
  }
  std::string_view text(pbf_reader& m) {
    count();
    const auto view = m.get_view();
    return {view.data(), view.size()};
  }

  std::int64_t objects_ = 0;
  const char* exceeded_ = nullptr;
};

ModelProto Reader::model(pbf_reader m) {
  ModelProto result;
  std::string_view producer;
  std::string_view version;
  while (next(m)) {
    switch (m.tag_and_type()) {
      case tag_and_type(field::model::kIrVersion, kVarint): result.ir_version = m.get_int64(); break;
      case tag_and_type(field::model::kProducerName, kBytes): producer = text(m); break;
      case tag_and_type(field::model::kProducerVersion, kBytes): version = text(m); break;
      case tag_and_type(field::model::kGraph, kBytes): result.graph = graph(m.get_message(), 0); break;
      case tag_and_type(field::model::kOpsetImport, kBytes): result.opsets.push_back(opset(m.get_message())); break;
      case tag_and_type(field::model::kMetadata, kBytes): result.metadata.push_back(entry(m.get_message())); break;
      default: m.skip();
    }
  }
  result.producer = std::string(producer);
  if (!version.empty()) result.producer += " " + std::string(version);
  return result;
}

std::pair<std::string_view, std::string_view> Reader::entry(pbf_reader m) {
  std::pair<std::string_view, std::string_view> result;
  while (next(m)) {
    switch (m.tag_and_type()) {
      case tag_and_type(field::entry::kKey, kBytes): result.first = text(m); break;
      case tag_and_type(field::entry::kValue, kBytes): result.second = text(m); break;
      default: m.skip();
    }
  }
  return result;
}

std::pair<std::string_view, std::int64_t> Reader::opset(pbf_reader m) {
  std::pair<std::string_view, std::int64_t> result;
  while (next(m)) {
    switch (m.tag_and_type()) {
      case tag_and_type(field::opset::kDomain, kBytes): result.first = canonical_domain(text(m)); break;
      case tag_and_type(field::opset::kVersion, kVarint): result.second = m.get_int64(); break;
      default: m.skip();
    }
  }
  return result;
}

GraphProto Reader::graph(pbf_reader m, int depth) {
  GraphProto result;
  if (depth > kMaxGraphDepth) exceeded_ = "its graphs are nested too deeply";
  while (next(m)) {
    switch (m.tag_and_type()) {
      case tag_and_type(field::graph::kName, kBytes): result.name = text(m); break;
      case tag_and_type(field::graph::kNode, kBytes): result.nodes.push_back(node(m.get_message(), depth)); break;
      case tag_and_type(field::graph::kInitializer, kBytes):
        result.initializers.push_back(tensor(m.get_message()));
        break;
      case tag_and_type(field::graph::kInput, kBytes): result.inputs.push_back(value_info(m.get_message())); break;
      case tag_and_type(field::graph::kOutput, kBytes): result.outputs.push_back(value_info(m.get_message())); break;
      case tag_and_type(field::graph::kSparseInitializer, kBytes):
        result.has_sparse_initializer = true;
        m.skip();
        break;
      default: m.skip();
    }
  }
  return result;
}

NodeProto Reader::node(pbf_reader m, int depth) {
  count();
  NodeProto result;
  while (next(m)) {
    switch (m.tag_and_type()) {
      case tag_and_type(field::node::kInput, kBytes): result.inputs.push_back(text(m)); break;
      case tag_and_type(field::node::kOutput, kBytes): result.outputs.push_back(text(m)); break;
      case tag_and_type(field::node::kName, kBytes): result.name = text(m); break;
      case tag_and_type(field::node::kOpType, kBytes): result.op_type = text(m); break;
      case tag_and_type(field::node::kDomain, kBytes): result.domain = canonical_domain(text(m)); break;
      case tag_and_type(field::node::kAttribute, kBytes):
        result.attributes.push_back(attribute(m.get_message(), depth));
        break;
      default: m.skip();
    }
  }
  return result;
}

AttributeProto::Kind attribute_kind(std::int32_t code) {
  constexpr auto kLast = static_cast<std::int32_t>(AttributeProto::Kind::kStrings);
  return code >= 0 && code <= kLast ? static_cast<AttributeProto::Kind>(code) : AttributeProto::Kind::kOther;
}

/// The kind of an attribute whose type field is missing, as files of IR versions 1 and 2 are.
AttributeProto::Kind implied_kind(const AttributeProto& a) {
  using Kind = AttributeProto::Kind;
  if (a.tensor) return Kind::kTensor;
  if (a.graph) return Kind::kGraph;
  if (!a.floats.empty()) return Kind::kFloats;
  if (!a.ints.empty()) return Kind::kInts;
  if (!a.strings.empty()) return Kind::kStrings;
  if (!a.s.empty()) return Kind::kString;
  return a.f != 0.0F ? Kind::kFloat : Kind::kInt;
}

AttributeProto Reader::attribute(pbf_reader m, int depth) {
  count();
  AttributeProto result;
  while (next(m)) {
    switch (m.tag_and_type()) {
      case tag_and_type(field::attribute::kName, kBytes): result.name = text(m); break;
      case tag_and_type(field::attribute::kType, kVarint): result.kind = attribute_kind(m.get_int32()); break;
      case tag_and_type(field::attribute::kFloat, kFixed32): result.f = m.get_float(); break;
      case tag_and_type(field::attribute::kInt, kVarint): result.i = m.get_int64(); break;
      case tag_and_type(field::attribute::kString, kBytes): result.s = text(m); break;
      case tag_and_type(field::attribute::kTensor, kBytes):
        result.tensor = std::make_unique<TensorProto>(tensor(m.get_message()));
        break;
      case tag_and_type(field::attribute::kGraph, kBytes):
        result.graph = std::make_unique<GraphProto>(graph(m.get_message(), depth + 1));
        break;
      case tag_and_type(field::attribute::kFloats, kFixed32): result.floats.push_back(m.get_float()); break;
      case tag_and_type(field::attribute::kFloats, kBytes):
        for (const float f : m.get_packed_float()) result.floats.push_back(f);
        break;
      case tag_and_type(field::attribute::kInts, kVarint): result.ints.push_back(m.get_int64()); break;
      case tag_and_type(field::attribute::kInts, kBytes):
        for (const std::int64_t i : m.get_packed_int64()) result.ints.push_back(i);
        break;
      case tag_and_type(field::attribute::kStrings, kBytes): result.strings.push_back(text(m)); break;
      case tag_and_type(field::attribute::kRefName, kBytes): result.is_reference = !text(m).empty(); break;
      default: m.skip();
    }
  }
  if (result.kind == AttributeProto::Kind::kNone) result.kind = implied_kind(result);
  return result;
}

TensorProto Reader::tensor(pbf_reader m) {
  count();
  TensorProto result;
  result.message = text_of(m);
  while (next(m)) {
    switch (m.tag_and_type()) {
      case tag_and_type(field::tensor::kDims, kVarint): result.dims.push_back(m.get_int64()); break;
      case tag_and_type(field::tensor::kDims, kBytes):
        for (const std::int64_t d : m.get_packed_int64()) result.dims.push_back(d);
        break;
      case tag_and_type(field::tensor::kDataType, kVarint): result.data_type = m.get_int32(); break;
      case tag_and_type(field::tensor::kName, kBytes): result.name = text(m); break;
      case tag_and_type(field::tensor::kRawData, kBytes): result.raw_data = text(m); break;
      case tag_and_type(field::tensor::kDataLocation, kVarint): result.external = m.get_int32() == 1; break;
      default: m.skip();
    }
  }
  return result;
}

ValueInfo Reader::value_info(pbf_reader m) {
  count();
  ValueInfo result;
  while (next(m)) {
    switch (m.tag_and_type()) {
      case tag_and_type(field::value_info::kName, kBytes): result.name = text(m); break;
      case tag_and_type(field::value_info::kType, kBytes): {
        pbf_reader type = m.get_message();
        while (next(type)) {
          if (type.tag_and_type() == tag_and_type(field::type::kTensorType, kBytes)) {
            tensor_type(type.get_message(), result);
          } else {
            type.skip();
          }
        }
        break;
      }
      default: m.skip();
    }
  }
  return result;
}

void Reader::tensor_type(pbf_reader m, ValueInfo& info) {
  info.is_tensor = true;
  while (next(m)) {
    switch (m.tag_and_type()) {
      case tag_and_type(field::tensor_type::kElementType, kVarint): info.data_type = m.get_int32(); break;
      case tag_and_type(field::tensor_type::kShape, kBytes): info.shape = shape(m.get_message()); break;
      default: m.skip();
    }
  }
}

std::vector<Dimension> Reader::shape(pbf_reader m) {
  std::vector<Dimension> result;
  while (next(m)) {
    if (m.tag_and_type() == tag_and_type(field::shape::kDim, kBytes)) {
      result.push_back(dimension(m.get_message()));
    } else {
      m.skip();
    }
  }
  return result;
}

Dimension Reader::dimension(pbf_reader m) {
  count();
  Dimension result;
  while (next(m)) {
    switch (m.tag_and_type()) {
      case tag_and_type(field::dim::kValue, kVarint): result.value = m.get_int64(); break;
      case tag_and_type(field::dim::kParam, kBytes): result.symbol = text(m); break;
      default: m.skip();
    }
  }
  return result;
}

/// Runs `read` on a fresh Reader: the one place where protozero's exceptions end.
template <typename T, typename Read>
Result<T> contained(const char* what, Read&& read) {
  Reader reader;
  try {
    T result = read(reader);
    if (reader.exceeded() == nullptr) return result;
    return fail(StatusCode::kUnsupported, fmt::format("the {} is refused: {}", what, reader.exceeded()));
  } catch (const std::exception& e) {
    return fail(StatusCode::kInvalidModel, fmt::format("the {} is damaged or truncated ({})", what, e.what()),
                "copy or export the file again");
  }
}

pbf_reader reader_of(std::span<const std::byte> bytes) {
  return pbf_reader(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

std::int64_t ModelProto::opset(std::string_view domain) const {
  for (const auto& [name, version] : opsets)
    if (name == domain) return version;
  return 1;
}

Result<ModelProto> read_model(std::span<const std::byte> bytes) {
  return contained<ModelProto>("ONNX model", [&](Reader& reader) { return reader.model(reader_of(bytes)); });
}

Result<TensorProto> read_tensor(std::span<const std::byte> bytes) {
  return contained<TensorProto>("ONNX tensor", [&](Reader& reader) { return reader.tensor(reader_of(bytes)); });
}

bool looks_like_model(std::span<const std::byte> bytes) {
  // Every serialiser writes fields in order of their numbers, so the IR version, a small number, comes first; a file
  // in another order is recognised when it can be walked to its end and has a graph.
  constexpr std::byte kIrVersionTag{(field::model::kIrVersion << 3U) | 0U};
  constexpr std::byte kLargestVersion{64};
  if (bytes.size() >= 2 && bytes[0] == kIrVersionTag && bytes[1] < kLargestVersion) return true;
  bool has_graph = false;
  try {
    pbf_reader m = reader_of(bytes);
    while (m.next()) {
      has_graph = has_graph || m.tag_and_type() == tag_and_type(field::model::kGraph, kBytes);
      m.skip();
    }
  } catch (const std::exception&) {
    return false;
  }
  return has_graph;
}

ElementType element_type(std::int32_t data_type) noexcept {
  switch (data_type) {
    case 1: return ElementType::kF32;
    case 2: return ElementType::kU8;
    case 3: return ElementType::kI8;
    case 4: return ElementType::kU16;
    case 5: return ElementType::kI16;
    case 6: return ElementType::kI32;
    case 7: return ElementType::kI64;
    case 9: return ElementType::kBool;
    case 10: return ElementType::kF16;
    case 11: return ElementType::kF64;
    case 12: return ElementType::kU32;
    case 13: return ElementType::kU64;
    case 16: return ElementType::kBF16;
    case 22: return ElementType::kI4;
    default: return ElementType::kNone;
  }
}

std::string_view data_type_name(std::int32_t data_type) noexcept {
  constexpr std::string_view kNames[] = {
      "undefined",      "float",      "uint8",          "int8",       "uint16",   "int16",
      "int32",          "int64",      "string",         "bool",       "float16",  "double",
      "uint32",         "uint64",     "complex64",      "complex128", "bfloat16", "float8e4m3fn",
      "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",      "int4",     "float4e2m1",
  };
  if (data_type < 0 || data_type >= static_cast<std::int32_t>(std::size(kNames))) return "unknown type";
  return kNames[data_type];
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMaxLength = 120;
  std::string result(text.substr(0, kMaxLength));
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  if (text.size() > kMaxLength) result += "...";
  return result;
}

}  // namespace bantam::import::onnx
