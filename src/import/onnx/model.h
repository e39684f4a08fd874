// An ONNX model as its file says it: plain structs over views into the mapped bytes, nothing interpreted yet.
//
// read_model is the boundary to untrusted bytes: it bounds nesting and object counts, and nothing in here is sized by a
// number that the file merely claims. All views stay valid as long as the model's bytes do. Immutable after reading.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bantam/error.h"
#include "bantam/tensor.h"

namespace bantam::import::onnx {

struct TensorProto {
  std::string_view name;
  std::int32_t data_type = 0;  ///< ONNX code
  std::vector<std::int64_t> dims;
  std::string_view message;  ///< the whole TensorProto: typed data is read from it on demand
  std::optional<std::string_view> raw_data;
  bool external = false;  ///< the data lies in another file
};

struct GraphProto;

struct AttributeProto {
  /// The codes of AttributeProto.type; kinds that no supported operator uses are kOther.
  enum class Kind : std::uint8_t { kNone, kFloat, kInt, kString, kTensor, kGraph, kFloats, kInts, kStrings, kOther };

  std::string_view name;
  Kind kind = Kind::kNone;
  bool is_reference = false;  ///< refers to an attribute of an enclosing function
  float f = 0.0F;
  std::int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string_view> strings;
  std::unique_ptr<TensorProto> tensor;
  std::unique_ptr<GraphProto> graph;
};

struct NodeProto {
  std::string_view name;
  std::string_view op_type;
  std::string_view domain;                ///< "" is ONNX's own ("ai.onnx" is read as "")
  std::vector<std::string_view> inputs;   ///< "" where an optional operand is absent
  std::vector<std::string_view> outputs;  ///< "" where nobody wants a result
  std::vector<AttributeProto> attributes;
};

/// One dimension of a declared shape: a number, a symbol, or neither.
struct Dimension {
  std::optional<std::int64_t> value;
  std::string_view symbol;
};

struct ValueInfo {
  std::string_view name;
  bool is_tensor = false;
  std::int32_t data_type = 0;
  std::optional<std::vector<Dimension>> shape;  ///< absent: rank unknown
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  bool has_sparse_initializer = false;
};

struct ModelProto {
  std::int64_t ir_version = 0;
  std::string producer;
  GraphProto graph;
  std::vector<std::pair<std::string_view, std::int64_t>> opsets;  ///< domain ("" is ONNX's own), version
  std::vector<std::pair<std::string_view, std::string_view>> metadata;

  /// Imported version of a domain; 1 for a domain that the model does not list.
  std::int64_t opset(std::string_view domain) const;
};

/// Most nested graphs (bodies of If, Loop, Scan) inside one another.
inline constexpr int kMaxGraphDepth = 24;

/// Most nodes, attributes, tensors, names and ports of one model together: real models stay below a tenth of it, and it
/// bounds what a small hostile file can make the reader allocate.
inline constexpr std::int64_t kMaxObjects = std::int64_t{1} << 22;

/// Reads a whole model. An Error says that the bytes are damaged or over a limit; nothing is checked about meaning.
Result<ModelProto> read_model(std::span<const std::byte> bytes);

/// Reads a bare TensorProto, the form in which ONNX test data come. Views refer to `bytes`.
Result<TensorProto> read_tensor(std::span<const std::byte> bytes);

/// True when the bytes begin like a serialised ModelProto, complete or truncated.
bool looks_like_model(std::span<const std::byte> bytes);

/// The element type of an ONNX code; kNone for strings, complex numbers, 8-bit floats and codes outside the format.
ElementType element_type(std::int32_t data_type) noexcept;

/// Numbers of 4 bits, two to a byte, exist in constants only; element_type knows the signed ones.
inline constexpr std::int32_t kUint4Code = 21;
inline constexpr std::int32_t kInt4Code = 22;

/// "float", "string", ... as ONNX calls the code; "unknown type".
std::string_view data_type_name(std::int32_t data_type) noexcept;

/// `text` for a message: control characters replaced, at most 120 bytes.
std::string printable(std::string_view text);

}  // namespace bantam::import::onnx
