#include "import/tflite/testing/model_builder.h"

namespace bantam::import::tflite::testing {

int ModelBuilder::tensor(const TensorSpec& spec) {
  std::uint32_t buffer = 0;
  if (!spec.data.empty()) {
    buffer = static_cast<std::uint32_t>(buffers_.size());
    fbb_.ForceVectorAlignment(spec.data.size(), 1, 16);
    buffers_.push_back(schema::CreateBuffer(fbb_, fbb_.CreateVector(spec.data)));
  }
  flatbuffers::Offset<schema::QuantizationParameters> quantization = 0;
  if (!spec.scale.empty())
    quantization = schema::CreateQuantizationParameters(
        fbb_, fbb_.CreateVector(spec.scale), fbb_.CreateVector(spec.zero_point), 0, spec.quantized_dimension);
  const auto shape = fbb_.CreateVector(spec.shape);
  const auto name = spec.name.empty() ? 0 : fbb_.CreateString(spec.name);
  const auto signature = spec.signature.empty() ? 0 : fbb_.CreateVector(spec.signature);
  tensors_.push_back(
      schema::CreateTensor(fbb_, shape, spec.type, buffer, name, quantization, spec.is_variable, 0, signature));
  return next_tensor_++;
}

void ModelBuilder::op(BuiltinOperator code, const std::vector<std::int32_t>& inputs,
                      const std::vector<std::int32_t>& outputs, BuiltinOptions type,
                      flatbuffers::Offset<void> options) {
  const auto old_code = static_cast<std::int8_t>(std::min(static_cast<std::int32_t>(code), 127));
  add_op(schema::CreateOperatorCode(fbb_, old_code, 0, 1, code), inputs, outputs, type, options);
}

void ModelBuilder::custom(const std::string& name, const std::vector<std::int32_t>& inputs,
                          const std::vector<std::int32_t>& outputs, const std::vector<std::uint8_t>& options) {
  const auto text = fbb_.CreateString(name);
  add_op(schema::CreateOperatorCode(fbb_, 32, text, 1, BuiltinOperator::CUSTOM), inputs, outputs, BuiltinOptions::NONE,
         0, options);
}

void ModelBuilder::add_op(flatbuffers::Offset<schema::OperatorCode> code, const std::vector<std::int32_t>& inputs,
                          const std::vector<std::int32_t>& outputs, BuiltinOptions type,
                          flatbuffers::Offset<void> options, const std::vector<std::uint8_t>& custom_options) {
  codes_.push_back(code);
  const auto in = fbb_.CreateVector(inputs);
  const auto out = fbb_.CreateVector(outputs);
  const auto custom = custom_options.empty() ? 0 : fbb_.CreateVector(custom_options);
  operators_.push_back(
      schema::CreateOperator(fbb_, static_cast<std::uint32_t>(codes_.size()) - 1, in, out, type, options, custom));
}

void ModelBuilder::end_subgraph(const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs) {
  const auto tensors = fbb_.CreateVector(tensors_);
  const auto in = fbb_.CreateVector(inputs);
  const auto out = fbb_.CreateVector(outputs);
  const auto operators = fbb_.CreateVector(operators_);
  const auto name = fbb_.CreateString("graph" + std::to_string(subgraphs_.size()));
  subgraphs_.push_back(schema::CreateSubGraph(fbb_, tensors, in, out, operators, name));
  tensors_.clear();
  operators_.clear();
  next_tensor_ = 0;
}

std::vector<std::uint8_t> ModelBuilder::finish(const std::vector<std::int32_t>& inputs,
                                               const std::vector<std::int32_t>& outputs, std::uint32_t version) {
  end_subgraph(inputs, outputs);
  const auto codes = fbb_.CreateVector(codes_);
  const auto subgraphs = fbb_.CreateVector(subgraphs_);
  const auto description = fbb_.CreateString("made by a test");
  const auto buffers = fbb_.CreateVector(buffers_);
  fbb_.Finish(schema::CreateModel(fbb_, version, codes, subgraphs, description, buffers), "TFL3");
  return {fbb_.GetBufferPointer(), fbb_.GetBufferPointer() + fbb_.GetSize()};
}

Source source_of(const std::vector<std::uint8_t>& file) {
  auto owner = std::make_shared<std::vector<std::byte>>(file.size());
  if (!file.empty()) std::memcpy(owner->data(), file.data(), file.size());
  Source source;
  source.name = "test.tflite";
  source.bytes = *owner;
  source.owner = std::move(owner);
  return source;
}

}  // namespace bantam::import::tflite::testing
