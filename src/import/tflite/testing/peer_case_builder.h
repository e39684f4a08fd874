// Builds one PeerCase: a model of a single operator and random data for its inputs. Test code.
//
//   CaseBuilder c("abs_i8");
//   const int x = c.input({.type = TensorType::INT8, .shape = {3, 5}, .scale = {0.1F}, .zero_point = {-3}});
//   c.op(BuiltinOperator::ABS, {x}, {c.output({.type = TensorType::INT8, .shape = {3, 5}, ...})});
//   cases.push_back(c.finish());
#pragma once

#include <optional>
#include <random>

#include "import/tflite/testing/model_builder.h"
#include "import/tflite/testing/peer_cases.h"

namespace bantam::import::tflite::testing {

using TensorType::BOOL;
using TensorType::FLOAT32;
using TensorType::INT16;
using TensorType::INT32;
using TensorType::INT64;
using TensorType::INT8;
using TensorType::UINT32;
using TensorType::UINT64;
using TensorType::UINT8;

/// Bounds of random elements; absent: all of the type, for floats [-4, 4].
struct Range {
  double low = 0;
  double high = 0;
};

class CaseBuilder {
 public:
  explicit CaseBuilder(std::string name, int steps = 1);

  int input(TensorSpec spec, std::optional<Range> range = std::nullopt);
  int output(TensorSpec spec);
  /// A constant with random elements.
  int weights(TensorSpec spec, std::optional<Range> range = std::nullopt);
  int integers(std::vector<std::int32_t> shape, const std::vector<std::int32_t>& values);
  int integers(const std::vector<std::int32_t>& values) {
    return integers({static_cast<std::int32_t>(values.size())}, values);
  }

  void op(BuiltinOperator code, const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs,
          BuiltinOptions type = BuiltinOptions::NONE, flatbuffers::Offset<void> options = 0) {
    model_.op(code, inputs, outputs, type, options);
  }
  void custom(const std::string& name, const std::vector<std::int32_t>& inputs,
              const std::vector<std::int32_t>& outputs, const std::vector<std::uint8_t>& options = {}) {
    model_.custom(name, inputs, outputs, options);
  }

  flatbuffers::FlatBufferBuilder& fbb() { return model_.fbb(); }
  /// Uniform in [0, n).
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  PeerCase finish();

 private:
  std::vector<std::uint8_t> random_elements(const TensorSpec& spec, std::optional<Range> range);

  PeerCase case_;
  ModelBuilder model_;
  std::mt19937 random_;
  std::vector<std::int32_t> inputs_;
  std::vector<std::int32_t> outputs_;
};

}  // namespace bantam::import::tflite::testing
