// Operators on int16 activations, 4-bit weights and recurrent layers, on small models built here. Their expectations
// are what TensorFlow Lite Micro's interpreter gives for the same files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "graph/testing/interpret.h"
#include "import/import.h"
#include "import/tflite/testing/model_builder.h"

namespace bantam::import::tflite {
namespace {

using testing::Activation;
using testing::BuiltinOperator;
using testing::BuiltinOptions;
using ::testing::ElementsAre;
using testing::ModelBuilder;
using testing::Padding;
using testing::source_of;
using testing::TensorSpec;
using testing::TensorType;

/// A quantised tensor.
TensorSpec quantized(std::string name, TensorType type, std::vector<std::int32_t> shape, float scale,
                     std::int64_t zero_point = 0) {
  TensorSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  spec.shape = std::move(shape);
  spec.scale = {scale};
  spec.zero_point = {zero_point};
  return spec;
}

TensorSpec scaled(float scale) { return quantized({}, TensorType::INT8, {}, scale); }

/// Runs a model with input x, other inputs of zeros and output y, `steps` times, and gives all results one after the
/// other.
template <typename Y, typename X>
std::vector<Y> run(const std::vector<std::uint8_t>& file, const std::vector<X>& x, std::size_t steps = 1) {
  const auto graph = import_tflite(source_of(file), {});
  EXPECT_TRUE(graph) << graph.error().message;
  if (!graph) return {};
  graph::testing::Interpreter interpreter(*graph);
  std::vector<Y> results;
  const std::size_t per_step = x.size() / steps;
  for (std::size_t s = 0; s < steps; ++s) {
    std::map<std::string, graph::testing::HostTensor> inputs;
    for (const graph::Port& port : graph->inputs) {
      const TensorDesc& desc = graph->value(port.value).desc;
      inputs[port.name] = {desc, std::vector<std::byte>(static_cast<std::size_t>(desc.bytes()))};
    }
    std::memcpy(inputs["x"].bytes.data(), x.data() + s * per_step, per_step * sizeof(X));
    auto outputs = interpreter.run(inputs);
    EXPECT_TRUE(outputs) << outputs.error().message;
    if (!outputs) return {};
    const auto& bytes = (*outputs)["y"].bytes;
    results.resize(results.size() + bytes.size() / sizeof(Y));
    std::memcpy(results.data() + results.size() - bytes.size() / sizeof(Y), bytes.data(), bytes.size());
  }
  return results;
}

/// One operator from x to y.
std::vector<std::uint8_t> unary_model(BuiltinOperator code, const TensorSpec& in, const TensorSpec& out,
                                      BuiltinOptions type = BuiltinOptions::NONE,
                                      flatbuffers::Offset<void> (*options)(flatbuffers::FlatBufferBuilder&) = nullptr) {
  ModelBuilder m;
  const int x = m.tensor(in);
  const int y = m.tensor(out);
  m.op(code, {x}, {y}, type, options != nullptr ? options(m.fbb()) : 0);
  return m.finish({x}, {y});
}

const std::vector<std::int16_t> kSome = {0, 1, -1, 900, -900, 12000, -12000, 32767, -32768, 25000};

TensorSpec some_in(float scale) { return quantized("x", TensorType::INT16, {1, 10}, scale); }
TensorSpec some_out(float scale) { return quantized("y", TensorType::INT16, {1, 10}, scale); }

TEST(Int16Activations, LogisticAndTanh) {
  constexpr float kQ15 = 1.0F / 32768;
  EXPECT_THAT(run<std::int16_t>(unary_model(BuiltinOperator::LOGISTIC, some_in(0.0003F), some_out(kQ15)), kSome),
              ElementsAre(16384, 16387, 16381, 18582, 14186, 31896, 872, 32766, 2, 32750));
  EXPECT_THAT(run<std::int16_t>(unary_model(BuiltinOperator::TANH, some_in(1.0F / 2048), some_out(kQ15)), kSome),
              ElementsAre(0, 16, -16, 13540, -13540, 32767, -32767, 32767, -32767, 32767));
  EXPECT_THAT(run<std::int16_t>(unary_model(BuiltinOperator::TANH, some_in(0.00001F), some_out(kQ15)), kSome),
              ElementsAre(0, 0, 0, 296, -296, 3914, -3914, 10368, -10368, 8026));
}

TEST(Int16Activations, SoftmaxByTables) {
  const auto options = [](flatbuffers::FlatBufferBuilder& fbb) {
    return schema::CreateSoftmaxOptions(fbb, 1.5F).Union();
  };
  EXPECT_THAT(run<std::int16_t>(unary_model(BuiltinOperator::SOFTMAX, some_in(0.0002F), some_out(1.0F / 32768),
                                            BuiltinOptions::SoftmaxOptions, options),
                                kSome),
              ElementsAre(2, 2, 2, 2, 2, 59, 2, 29797, 2, 2899));
}

TEST(Int16Activations, LeakyReluAndRelu) {
  const auto options = [](flatbuffers::FlatBufferBuilder& fbb) {
    return schema::CreateLeakyReluOptions(fbb, 0.3F).Union();
  };
  EXPECT_THAT(run<std::int16_t>(unary_model(BuiltinOperator::LEAKY_RELU, some_in(0.0004F), some_out(0.0005F),
                                            BuiltinOptions::LeakyReluOptions, options),
                                kSome),
              ElementsAre(0, 1, 0, 720, -216, 9600, -2880, 26214, -7864, 20000));
  EXPECT_THAT(run<std::int16_t>(unary_model(BuiltinOperator::RELU, some_in(0.0004F), some_out(0.0003F)), kSome),
              ElementsAre(0, 1, 0, 1200, 0, 16000, 0, 32767, 0, 32767));
  EXPECT_THAT(run<std::int16_t>(unary_model(BuiltinOperator::RELU6, some_in(0.0004F), some_out(0.0004F)), kSome),
              ElementsAre(0, 1, 0, 900, 0, 12000, 0, 15000, 0, 15000));
}

TEST(Int16Activations, Pools) {
  const auto options = [](flatbuffers::FlatBufferBuilder& fbb) {
    return schema::CreatePool2DOptions(fbb, Padding::SAME, 2, 1, 3, 1, Activation::RELU6).Union();
  };
  const auto model = [&](BuiltinOperator code) {
    return unary_model(code, quantized("x", TensorType::INT16, {1, 1, 5, 2}, 0.0005F),
                       quantized("y", TensorType::INT16, {1, 1, 3, 2}, 0.0005F), BuiltinOptions::Pool2DOptions,
                       options);
  };
  EXPECT_THAT(run<std::int16_t>(model(BuiltinOperator::AVERAGE_POOL_2D), kSome),
              ElementsAre(0, 451, 0, 12000, 0, 12000));
  EXPECT_THAT(run<std::int16_t>(model(BuiltinOperator::MAX_POOL_2D), kSome), ElementsAre(0, 900, 0, 12000, 0, 12000));
}

TEST(Int16Activations, Mean) {
  ModelBuilder m;
  const int x = m.tensor(quantized("x", TensorType::INT16, {2, 5}, 0.0005F));
  const int axes = m.constant<std::int32_t>({1}, {1});
  const int y = m.tensor(quantized("y", TensorType::INT16, {2}, 0.0003F));
  m.op(BuiltinOperator::MEAN, {x, axes}, {y}, BuiltinOptions::ReducerOptions,
       schema::CreateReducerOptions(m.fbb(), false).Union());
  EXPECT_THAT(run<std::int16_t>(m.finish({x}, {y}), kSome), ElementsAre(0, 8333));
}

TEST(Int16Activations, FullyConnectedWithoutBiasChoosesItsSums) {
  const auto model = [](TensorType accumulator) {
    ModelBuilder m;
    const int x = m.tensor(quantized("x", TensorType::INT16, {2, 5}, 0.0005F));
    const int w = m.constant<std::int8_t>({2, 5}, {127, -77, 9, 100, -5, 3, 50, -127, 8, 99}, scaled(0.01F));
    const int y = m.tensor(quantized("y", TensorType::INT16, {2, 2}, 0.0007F));
    m.op(BuiltinOperator::FULLY_CONNECTED, {x, w, -1}, {y}, BuiltinOptions::FullyConnectedOptions,
         schema::CreateFullyConnectedOptions(m.fbb(), Activation::NONE, 0, false, false, accumulator).Union());
    return m.finish({x}, {y});
  };
  EXPECT_THAT(run<std::int16_t>(model(TensorType::INT64), kSome), ElementsAre(674, -584, -4706, -17947));
  EXPECT_THAT(run<std::int16_t>(model(TensorType::INT32), kSome), ElementsAre(674, -584, -4706, -17947));
}

TEST(FourBitWeights, AreUnpackedLowNibbleFirst) {
  ModelBuilder m;
  const int x = m.tensor(quantized("x", TensorType::INT8, {1, 5}, 0.05F, -3));
  TensorSpec packed = quantized("w", TensorType::INT4, {3, 5}, 0.1F);
  packed.data = {0x71, 0x8f, 0x2e, 0x93, 0xa4, 0xb5, 0xc6, 0x07};
  const int w = m.tensor(packed);
  const int b = m.constant<std::int32_t>({3}, {100, -200, 300}, scaled(0.005F));
  const int y = m.tensor(quantized("y", TensorType::INT8, {1, 3}, 0.09F, 5));
  m.op(BuiltinOperator::FULLY_CONNECTED, {x, w, b}, {y}, BuiltinOptions::FullyConnectedOptions,
       schema::CreateFullyConnectedOptions(m.fbb(), Activation::NONE).Union());
  EXPECT_THAT(run<std::int8_t>(m.finish({x}, {y}), std::vector<std::int8_t>{100, -100, 7, 50, -128}),
              ElementsAre(-32, 39, 20));
}

TEST(Int8TransposeConvolution, TakesItsSizeFromTheResultWhereNoConstantGivesIt) {
  ModelBuilder m;
  const int shape = m.tensor({.name = "shape", .type = TensorType::INT32, .shape = {4}});
  const int x = m.tensor(quantized("x", TensorType::INT8, {1, 1, 3, 2}, 0.05F, -3));
  TensorSpec per_channel = scaled(0.02F);
  per_channel.scale = {0.02F, 0.03F};
  per_channel.zero_point = {0, 0};
  const int w = m.constant<std::int8_t>({2, 1, 3, 2}, {1, -100, 50, 127, -3, 8, 77, -80, 20, 11, -99, 4}, per_channel);
  const int b = m.constant<std::int32_t>({2}, {1000, -2000}, scaled(0.001F));
  const int y = m.tensor(quantized("y", TensorType::INT8, {1, 1, 6, 2}, 0.15F, 7));
  m.op(BuiltinOperator::TRANSPOSE_CONV, {shape, w, x, b}, {y}, BuiltinOptions::TransposeConvOptions,
       schema::CreateTransposeConvOptions(m.fbb(), Padding::SAME, 2, 1).Union());
  EXPECT_THAT(run<std::int8_t>(m.finish({x, shape}, {y}), std::vector<std::int8_t>{100, -100, 7, 50, -128, 3}),
              ElementsAre(79, 127, -34, -3, -29, -128, 62, -5, 11, -122, -23, -37));
}

/// An LSTM of two units over three inputs. The file's gates come in the order input, forget, cell, output.
template <typename Bias>
std::vector<std::uint8_t> lstm_model(TensorType type, std::vector<std::int32_t> shape, bool time_major, float cell_clip,
                                     std::int64_t zero_point) {
  ModelBuilder m;
  const std::int32_t batch = shape[time_major ? 1 : 0];
  const float scale = type == TensorType::INT8 ? 0.008F : 0.00003F;
  const int x = m.tensor(quantized("x", type, shape, type == TensorType::INT8 ? 0.02F : 0.0001F, zero_point));
  std::vector<int> operands{x};
  for (int g = 0; g < 4; ++g) {
    const auto v = [g](int i) { return static_cast<std::int8_t>((g * 53 + i * 71) % 255 - 127); };
    operands.push_back(m.constant<std::int8_t>({2, 3}, {v(0), v(1), v(2), v(3), v(4), v(5)}, scaled(0.01F)));
  }
  for (int g = 0; g < 4; ++g) {
    const auto v = [g](int i) { return static_cast<std::int8_t>((g * 91 + i * 37 + 5) % 255 - 127); };
    operands.push_back(m.constant<std::int8_t>({2, 2}, {v(0), v(1), v(2), v(3)}, scaled(0.012F)));
  }
  operands.insert(operands.end(), 3, -1);
  for (int g = 0; g < 4; ++g) operands.push_back(m.constant<Bias>({2}, {Bias{1000} * g - 1500, Bias{300} - g * 200}));
  operands.insert(operands.end(), 2, -1);
  TensorSpec hidden = quantized("hidden", type, {batch, 2}, scale, zero_point == 0 ? 0 : 2);
  TensorSpec cell = quantized("cell", TensorType::INT16, {batch, 2}, 1.0F / 4096);
  hidden.is_variable = cell.is_variable = true;
  operands.push_back(m.tensor(hidden));
  operands.push_back(m.tensor(cell));
  operands.insert(operands.end(), 4, -1);
  shape[2] = 2;
  const int y = m.tensor(quantized("y", type, shape, scale, zero_point == 0 ? 0 : 2));
  m.op(BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM, operands, {y}, BuiltinOptions::UnidirectionalSequenceLSTMOptions,
       schema::CreateUnidirectionalSequenceLSTMOptions(m.fbb(), Activation::TANH, cell_clip, 0, time_major).Union());
  return m.finish({x}, {y});
}

TEST(IntegerLstm, Int8ByBatchKeepsItsStateBetweenInvokes) {
  EXPECT_THAT(run<std::int8_t>(lstm_model<std::int32_t>(TensorType::INT8, {2, 2, 3}, false, 0, -7),
                               std::vector<std::int8_t>{100, -100, 7,   50, -128, 3,  9,  8,  -90, 127, 60, -60,
                                                        1,   2,    -33, 44, 55,   66, 77, 88, 99,  -1,  -2, -3},
                               2),
              ElementsAre(-1, -11, -4, -10, -23, -55, -2, -68, -30, -38, 2, 9, 8, 6, 11, 4));
}

TEST(IntegerLstm, Int8ByTimeWithAClippedCell) {
  EXPECT_THAT(run<std::int8_t>(lstm_model<std::int32_t>(TensorType::INT8, {2, 2, 3}, true, 0.25F, -7),
                               std::vector<std::int8_t>{100, -100, 7, 50, -128, 3, 9, 8, -90, 127, 60, -60}),
              ElementsAre(-1, -3, -2, -2, -25, -25, -1, -24));
}

TEST(IntegerLstm, Int16) {
  EXPECT_THAT(run<std::int16_t>(lstm_model<std::int64_t>(TensorType::INT16, {3, 1, 3}, true, 0, 0),
                                std::vector<std::int16_t>{20000, -30000, 700, 5000, -12800, 300, 9000, 8, -32768}),
              ElementsAre(-697, -2542, -3786, -5712, -7586, -23690));
}

/// Two units of two filters with a memory of three.
template <typename State>
std::vector<std::uint8_t> svdf_model(TensorType state_type, float state_scale, std::int64_t state_zero_point) {
  ModelBuilder m;
  const int x = m.tensor(quantized("x", TensorType::INT8, {1, 3}, 0.02F, -5));
  const int w = m.constant<std::int8_t>({4, 3}, {127, -77, 9, 100, -5, 3, 50, -127, 8, 99, -64, 32}, scaled(0.01F));
  TensorSpec time = quantized({}, state_type, {}, 0.005F);
  const int t = m.constant<State>({4, 3}, {10, -20, 100, 50, 60, -70, 80, 127, -128, 1, 2, 3}, time);
  const int b = m.constant<std::int32_t>({2}, {1000, -2000}, scaled(state_scale * 0.005F));
  TensorSpec state = quantized("state", state_type, {1, 12}, state_scale, state_zero_point);
  state.is_variable = true;
  const int s = m.tensor(state);
  const int y = m.tensor(quantized("y", TensorType::INT8, {1, 2}, 0.02F, 9));
  m.op(BuiltinOperator::SVDF, {x, w, t, b, s}, {y}, BuiltinOptions::SVDFOptions,
       schema::CreateSVDFOptions(m.fbb(), 2, Activation::RELU).Union());
  return m.finish({x}, {y});
}

const std::vector<std::int8_t> kFourFrames = {100, -100, 7, 50, -128, 3, 9, 8, -90, 127, 60, -60};

TEST(IntegerSvdf, StateOfInt8WithAZeroPoint) {
  EXPECT_THAT(run<std::int8_t>(svdf_model<std::int8_t>(TensorType::INT8, 0.03F, 6), kFourFrames, 4),
              ElementsAre(-119, -115, 127, 127, 32, -51, 55, -81));
}

TEST(IntegerSvdf, StateOfInt16) {
  EXPECT_THAT(run<std::int8_t>(svdf_model<std::int16_t>(TensorType::INT16, 0.0002F, 0), kFourFrames, 4),
              ElementsAre(74, -100, 82, 5, 45, 127, 48, 87));
}

}  // namespace
}  // namespace bantam::import::tflite
