// A TensorFlow Lite file as verified, read-only tables.
//
// The importer and `declare` open files through this. After `open` every table, vector and string reachable from
// `model()` lies inside the file; indices between tables are still the file's claims and are checked where they are
// followed. Bytes are shared, never copied, unless the memory is not 8-byte aligned. Thread rule: immutable.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/import.h"
#include "import/tflite/tflite_subset_generated.h"

namespace bantam::import::tflite {

class ModelFile {
 public:
  static Result<ModelFile> open(const Source& source);

  const schema::Model& model() const noexcept { return *model_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  const std::shared_ptr<const void>& owner() const noexcept { return owner_; }

  /// Bytes of a buffer; empty for those that hold nothing. Fails for an index or an extent outside the file.
  Result<std::span<const std::byte>> buffer(std::uint32_t index) const;

  /// Names of the metadata entries, each with the size of its content.
  std::vector<std::pair<std::string, std::string>> metadata() const;

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  const schema::Model* model_ = nullptr;
};

/// Elements of an optional vector.
template <typename T>
std::uint32_t count(const flatbuffers::Vector<T>* v) noexcept {
  return v == nullptr ? 0 : v->size();
}
/// Element `i` of a vector of scalars. FlatBuffers verifies where a vector begins only to four bytes, so that 64-bit
/// elements may lie at any multiple of four. Requires i < count(v).
template <typename T>
T element(const flatbuffers::Vector<T>* v, std::uint32_t i) noexcept {
  T result;
  std::memcpy(&result, v->Data() + std::size_t{i} * sizeof(T), sizeof(T));
  return result;
}
template <typename T>
std::vector<std::int64_t> integers(const flatbuffers::Vector<T>* v) {
  std::vector<std::int64_t> result(count(v));
  for (std::uint32_t i = 0; i < count(v); ++i) result[i] = static_cast<std::int64_t>(element(v, i));
  return result;
}
std::string text(const flatbuffers::String* s);

/// A name from the file as messages show it: quoted, printable, not endless.
std::string shown_name(std::string_view name);

/// Never kNone for numeric types; kNone for strings, resources, complex numbers and numbers outside the format.
ElementType element_type(schema::TensorType type) noexcept;
/// "FLOAT32", ...; the number outside the format.
std::string type_name(schema::TensorType type);

/// The operator a code stands for, whichever of the two fields carries it.
schema::BuiltinOperator builtin_operator(const schema::OperatorCode& code) noexcept;
/// "CONV_2D"; "CUSTOM:name"; "operator 205" for numbers we know no name of.
std::string operator_name(const schema::OperatorCode& code);

/// Per-tensor quantisation with a positive finite scale; nothing otherwise.
std::optional<Quantization> port_quantization(const schema::Tensor& tensor);

/// Name of port `index`: its tensor's, or "in0" / "out0" by position.
std::string port_name(const schema::Tensor& tensor, std::string_view kind, std::size_t index);

}  // namespace bantam::import::tflite
