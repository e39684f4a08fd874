// Builds small TensorFlow Lite files for tests, with the importer's own schema.
//
//   ModelBuilder m;
//   const int x = m.tensor({.name = "x", .type = TensorType::FLOAT32, .shape = {1, 4}});
//   const int y = m.tensor({.name = "y", .type = TensorType::FLOAT32, .shape = {1, 4}});
//   m.op(BuiltinOperator::RELU, {x}, {y});
//   const std::vector<std::uint8_t> file = m.finish({x}, {y});
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "import/import.h"
#include "import/tflite/tflite_subset_generated.h"

namespace bantam::import::tflite::testing {

using schema::Activation;
using schema::BuiltinOperator;
using schema::BuiltinOptions;
using schema::Padding;
using schema::TensorType;

struct TensorSpec {
  std::string name{};
  TensorType type = TensorType::FLOAT32;
  std::vector<std::int32_t> shape{};
  std::vector<float> scale{};
  std::vector<std::int64_t> zero_point{};
  std::int32_t quantized_dimension = 0;
  bool is_variable = false;
  std::vector<std::int32_t> signature{};
  std::vector<std::uint8_t> data{};  ///< of a constant
};

template <typename T>
std::vector<std::uint8_t> bytes_of(std::initializer_list<T> elements) {
  std::vector<std::uint8_t> bytes(elements.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.begin(), bytes.size());
  return bytes;
}

template <typename T>
constexpr TensorType type_of() {
  if constexpr (std::is_same_v<T, float>) return TensorType::FLOAT32;
  if constexpr (std::is_same_v<T, std::int8_t>) return TensorType::INT8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return TensorType::UINT8;
  if constexpr (std::is_same_v<T, std::int16_t>) return TensorType::INT16;
  if constexpr (std::is_same_v<T, std::int32_t>) return TensorType::INT32;
  if constexpr (std::is_same_v<T, std::int64_t>) return TensorType::INT64;
  if constexpr (std::is_same_v<T, std::uint32_t>) return TensorType::UINT32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return TensorType::UINT64;
  if constexpr (std::is_same_v<T, bool>) return TensorType::BOOL;
}

class ModelBuilder {
 public:
  ModelBuilder() { buffers_.push_back(schema::CreateBuffer(fbb_)); }

  int tensor(const TensorSpec& spec);

  /// A constant tensor.
  template <typename T>
  int constant(std::vector<std::int32_t> shape, std::initializer_list<T> elements, TensorSpec spec = {}) {
    spec.type = type_of<T>();
    spec.shape = std::move(shape);
    spec.data = bytes_of(elements);
    return tensor(spec);
  }

  /// An operator of the current subgraph.
  void op(BuiltinOperator code, const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs,
          BuiltinOptions type = BuiltinOptions::NONE, flatbuffers::Offset<void> options = 0);
  /// `options`: FlexBuffers bytes.
  void custom(const std::string& name, const std::vector<std::int32_t>& inputs,
              const std::vector<std::int32_t>& outputs, const std::vector<std::uint8_t>& options = {});

  /// Ends the current subgraph and starts the next.
  void end_subgraph(const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs);

  /// The file; the current subgraph is its last.
  std::vector<std::uint8_t> finish(const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs,
                                   std::uint32_t version = 3);

  flatbuffers::FlatBufferBuilder& fbb() { return fbb_; }

 private:
  void add_op(flatbuffers::Offset<schema::OperatorCode> code, const std::vector<std::int32_t>& inputs,
              const std::vector<std::int32_t>& outputs, BuiltinOptions type, flatbuffers::Offset<void> options,
              const std::vector<std::uint8_t>& custom_options = {});

  flatbuffers::FlatBufferBuilder fbb_;
  std::vector<flatbuffers::Offset<schema::Buffer>> buffers_;
  std::vector<flatbuffers::Offset<schema::OperatorCode>> codes_;
  std::vector<flatbuffers::Offset<schema::Tensor>> tensors_;
  std::vector<flatbuffers::Offset<schema::Operator>> operators_;
  std::vector<flatbuffers::Offset<schema::SubGraph>> subgraphs_;
  std::int32_t next_tensor_ = 0;
};

/// A Source that owns a copy of the file, 8-byte aligned.
Source source_of(const std::vector<std::uint8_t>& file);

}  // namespace bantam::import::tflite::testing
