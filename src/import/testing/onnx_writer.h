// Writes small ONNX models for tests, field by field with protozero, so that tests need no ONNX library and can also
// write what no library would.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "bantam/tensor.h"
#include "graph/builder.h"
#include "import/import.h"

namespace bantam::import::testing {

/// A serialised AttributeProto.
std::string attr(std::string_view name, std::int64_t value);
std::string attr(std::string_view name, int value);
std::string attr(std::string_view name, float value);
std::string attr(std::string_view name, std::string_view value);
std::string attr(std::string_view name, const char* value);
std::string attr(std::string_view name, const std::vector<std::int64_t>& values);
std::string attr(std::string_view name, const std::vector<float>& values);
std::string attr(std::string_view name, const std::vector<std::string>& values);
std::string tensor_attr(std::string_view name, const std::string& tensor);
std::string graph_attr(std::string_view name, const std::string& graph);

/// The ONNX code of an element type.
std::int32_t onnx_code(ElementType type);

/// A serialised TensorProto with raw data.
std::string raw_tensor(std::string_view name, ElementType type, const std::vector<std::int64_t>& dims,
                       std::string_view raw);

/// The same for any code of the format, data as the format packs them.
std::string coded_tensor(std::string_view name, std::int32_t code, const std::vector<std::int64_t>& dims,
                         std::string_view raw);

template <typename T>
std::string tensor(std::string_view name, const std::vector<std::int64_t>& dims, const std::vector<T>& elements) {
  return raw_tensor(name, graph::element_type_of<T>(), dims,
                    {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)});
}

/// A TensorProto whose data lie in another file.
std::string external_tensor(std::string_view name, ElementType type, const std::vector<std::int64_t>& dims,
                            const std::vector<std::pair<std::string, std::string>>& entries);

/// A dimension: a number, a symbol, or "" for one that is not named.
using Dim = std::variant<std::int64_t, std::string>;

/// Collects the parts of a graph in the order of the calls.
class GraphWriter {
 public:
  GraphWriter& input(std::string_view name, const std::vector<Dim>& dims, ElementType type = ElementType::kF32);
  GraphWriter& output(std::string_view name, ElementType type = ElementType::kF32);
  /// A serialised TensorProto.
  GraphWriter& initializer(const std::string& tensor);
  GraphWriter& node(std::string_view op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::vector<std::string>& attributes = {},
                    std::string_view name = {}, std::string_view domain = {});

  /// The GraphProto, for graph_attr.
  const std::string& graph() const { return graph_; }
  /// A whole ModelProto. Domains other than ONNX's are imported in version 1.
  std::string model(std::int64_t opset = 17) const;

 private:
  std::string graph_;
  std::set<std::string> domains_;  ///< of nodes, but ONNX's own
};

/// A source over `bytes`, which it copies and owns.
Source source_of(const std::string& bytes, std::filesystem::path directory = {});

}  // namespace bantam::import::testing
