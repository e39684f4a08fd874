#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "graph/graph.h"
#include "graph/testing/interpret.h"
#include "import/import.h"
#include "import/tflite/testing/model_builder.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/matmul/matmul.h"

namespace bantam::import::tflite {
namespace {

using testing::Activation;
using testing::BuiltinOperator;
using testing::BuiltinOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ModelBuilder;
using ::testing::Not;
using testing::Padding;
using ::testing::SizeIs;
using testing::source_of;
using testing::TensorType;

template <typename T>
std::vector<std::byte> bytes(std::initializer_list<T> elements) {
  const auto raw = testing::bytes_of(elements);
  std::vector<std::byte> result(raw.size());
  if (!raw.empty()) std::memcpy(result.data(), raw.data(), raw.size());
  return result;
}

template <typename T>
std::vector<T> elements(const std::vector<std::byte>& bytes) {
  std::vector<T> result(bytes.size() / sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

using Elements = std::map<std::string, std::vector<std::byte>>;  ///< by port name

/// Runs a graph step by step on bare elements, whose shapes are those of the ports.
class Runner {
 public:
  explicit Runner(const graph::Graph& graph) : graph_(graph), interpreter_(graph) {}

  Elements run(const Elements& inputs) {
    std::map<std::string, graph::testing::HostTensor> tensors;
    for (const graph::Port& port : graph_.inputs)
      tensors[port.name] = {graph_.value(port.value).desc, inputs.at(port.name)};
    auto outputs = interpreter_.run(tensors);
    EXPECT_TRUE(outputs) << outputs.error().message;
    Elements elements;
    if (outputs)
      for (auto& [name, tensor] : *outputs) elements[name] = std::move(tensor.bytes);
    return elements;
  }

 private:
  const graph::Graph& graph_;
  graph::testing::Interpreter interpreter_;
};

/// Imports and runs once.
Elements import_and_run(const std::vector<std::uint8_t>& file, const Elements& inputs) {
  const auto graph = import_tflite(source_of(file), {});
  EXPECT_TRUE(graph) << graph.error().message;
  return graph ? Runner(*graph).run(inputs) : Elements{};
}

Error import_error(const std::vector<std::uint8_t>& file, const Options& options = {}) {
  auto graph = import_tflite(source_of(file), options);
  EXPECT_FALSE(graph) << "the import succeeds";
  return graph ? Error{} : graph.error();
}

/// x -> op -> y on float tensors of one shape.
std::vector<std::uint8_t> unary_model(BuiltinOperator code, const std::vector<std::int32_t>& shape = {2}) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = shape});
  const int y = m.tensor({.name = "y", .shape = shape});
  m.op(code, {x}, {y});
  return m.finish({x}, {y});
}

TEST(TfliteImport, NamesPortsAndCarriesTheirQuantisation) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .type = TensorType::INT8, .shape = {2}, .scale = {0.5F}, .zero_point = {3}});
  const int y = m.tensor({.type = TensorType::FLOAT32, .shape = {2}});
  m.op(BuiltinOperator::DEQUANTIZE, {x}, {y});
  const auto graph = import_tflite(source_of(m.finish({x}, {y})), {});
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_THAT(graph->inputs, SizeIs(1));
  ASSERT_THAT(graph->outputs, SizeIs(1));
  EXPECT_EQ(graph->inputs[0].name, "x");
  EXPECT_EQ(graph->outputs[0].name, "out0");
  const auto& quantization = graph->value(graph->inputs[0].value).quantization;
  ASSERT_TRUE(quantization);
  EXPECT_EQ(quantization->scale, 0.5F);
  EXPECT_EQ(quantization->zero_point, 3);
  EXPECT_FALSE(graph->value(graph->outputs[0].value).quantization);
}

/// Filters of 2x2 for an image of one channel, `count` of them, without a bias.
Source depthwise_of_one_channel(std::initializer_list<float> filters, int count) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {1, 2, 2, 1}});
  const int w = m.constant<float>({1, 2, 2, count}, filters);
  const int y = m.tensor({.name = "y", .shape = {1, 2, 2, count}});
  m.op(BuiltinOperator::DEPTHWISE_CONV_2D, {x, w}, {y}, BuiltinOptions::DepthwiseConv2DOptions,
       schema::CreateDepthwiseConv2DOptions(m.fbb(), Padding::SAME, 1, 1).Union());
  return source_of(m.finish({x}, {y}));
}

TEST(TfliteImport, DepthwiseOfOneChannelIsAPlainConvolution) {
  const auto graph = import_tflite(depthwise_of_one_channel({1, 2, 3, 4, 5, 6, 7, 8}, 2), {});
  ASSERT_TRUE(graph) << graph.error().message;
  const auto& convolution = graph->nodes.back();
  ASSERT_TRUE(convolution.is(ops::kConv2d));
  EXPECT_EQ(graph::format_desc(graph->value(convolution.inputs[1]).desc), "f32[2,2,2,1]");
  EXPECT_EQ(graph::format_desc(graph->value(convolution.outputs[0]).desc), "f32[1,2,2,2]");
}

TEST(TfliteImport, WeightsStayWhereTheFileHasThem) {
  const Source source = depthwise_of_one_channel({1, 2, 3, 4}, 1);
  const auto graph = import_tflite(source, {});
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_THAT(graph->nodes, SizeIs(1));
  EXPECT_TRUE(graph->nodes[0].is(ops::kDepthwiseConv2d));
  const graph::Value& weights = graph->value(graph->nodes[0].inputs[1]);
  EXPECT_EQ(graph::format_desc(weights.desc), "f32[2,2,1]");
  const std::byte* data = weights.constant->bytes.data();
  EXPECT_TRUE(data >= source.bytes.data() && data < source.bytes.data() + source.bytes.size());
}

TEST(TfliteImport, PadsSameWithTheOddElementBehind) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {1, 2, 2, 1}});
  const int w = m.constant<float>({1, 2, 2, 1}, {1, 2, 3, 4});
  const int b = m.constant<float>({1}, {10});
  const int y = m.tensor({.name = "y", .shape = {1, 2, 2, 1}});
  m.op(BuiltinOperator::CONV_2D, {x, w, b}, {y}, BuiltinOptions::Conv2DOptions,
       schema::CreateConv2DOptions(m.fbb(), Padding::SAME, 1, 1).Union());
  const auto y_bytes = import_and_run(m.finish({x}, {y}), {{"x", bytes<float>({1, 2, 3, 4})}})["y"];
  // [1 2; 3 4] with zeros right and below.
  EXPECT_THAT(elements<float>(y_bytes), ElementsAre(40, 10 + 2 + 12, 10 + 3 + 8, 10 + 4));
}

TEST(TfliteImport, ConvolvesInt8PerChannelToTheBit) {
  ModelBuilder m;
  const int x =
      m.tensor({.name = "x", .type = TensorType::INT8, .shape = {1, 1, 1, 2}, .scale = {0.5F}, .zero_point = {-1}});
  const int w = m.constant<std::int8_t>({2, 1, 1, 2}, {1, 2, -3, 4}, {.scale = {0.5F, 0.25F}, .zero_point = {0, 0}});
  const int b = m.constant<std::int32_t>({2}, {6, -2}, {.scale = {0.25F, 0.125F}, .zero_point = {0, 0}});
  const int y =
      m.tensor({.name = "y", .type = TensorType::INT8, .shape = {1, 1, 1, 2}, .scale = {0.5F}, .zero_point = {4}});
  m.op(BuiltinOperator::CONV_2D, {x, w, b}, {y}, BuiltinOptions::Conv2DOptions,
       schema::CreateConv2DOptions(m.fbb(), Padding::VALID, 1, 1, Activation::RELU).Union());
  const auto out = import_and_run(m.finish({x}, {y}), {{"x", bytes<std::int8_t>({9, 19})}});
  // (x + 1) = 10, 20. Channel 0: 10 + 40 + 6 = 56, * 0.5 = 28, + 4. Channel 1: -30 + 80 - 2 = 48, * 0.25 = 12, + 4.
  EXPECT_THAT(elements<std::int8_t>(out.at("y")), ElementsAre(32, 16));
}

TEST(TfliteImport, ConnectsInt8FullyToTheBit) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .type = TensorType::INT8, .shape = {1, 1, 2}, .scale = {1}, .zero_point = {0}});
  const int w = m.constant<std::int8_t>({2, 2}, {1, 1, -1, 5}, {.scale = {0.5F}, .zero_point = {0}});
  const int y = m.tensor({.name = "y", .type = TensorType::INT8, .shape = {1, 1, 2}, .scale = {1}, .zero_point = {-3}});
  m.op(BuiltinOperator::FULLY_CONNECTED, {x, w, -1}, {y}, BuiltinOptions::FullyConnectedOptions,
       schema::CreateFullyConnectedOptions(m.fbb(), Activation::NONE, 0, true).Union());
  const auto file = m.finish({x}, {y});
  const auto out = import_and_run(file, {{"x", bytes<std::int8_t>({3, 2})}});
  // 5 * 0.5 = 2.5 rounds to 3; 7 * 0.5 = 3.5 rounds to 4; minus 3.
  EXPECT_THAT(elements<std::int8_t>(out.at("y")), ElementsAre(0, 1));
  const auto graph = import_tflite(source_of(file), {});
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph::format_desc(graph->value(graph->outputs[0].value).desc), "i8[1,1,2]");
}

TEST(TfliteImport, AddsInt8WithFusedRelu6ToTheBit) {
  ModelBuilder m;
  const auto spec = [](const char* name, float scale, std::int64_t zero) {
    return testing::TensorSpec{
        .name = name, .type = TensorType::INT8, .shape = {3}, .scale = {scale}, .zero_point = {zero}};
  };
  const int a = m.tensor(spec("a", 0.5F, 0));
  const int b = m.tensor(spec("b", 0.25F, 10));
  const int y = m.tensor(spec("y", 0.5F, -128));
  m.op(BuiltinOperator::ADD, {a, b}, {y}, BuiltinOptions::AddOptions,
       schema::CreateAddOptions(m.fbb(), Activation::RELU6).Union());
  const auto out = import_and_run(m.finish({a, b}, {y}),
                                  {{"a", bytes<std::int8_t>({4, -20, 100})}, {"b", bytes<std::int8_t>({14, 10, 10})}});
  // 2 + 1 = 3 -> 6 - 128; -10 -> 0; 50 -> 6 -> 12 - 128.
  EXPECT_THAT(elements<std::int8_t>(out.at("y")), ElementsAre(-122, -128, -116));
}

TEST(TfliteImport, LooksUpInt8FunctionsInTables) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .type = TensorType::INT8, .shape = {2}, .scale = {0.5F}, .zero_point = {0}});
  const int y = m.tensor({.name = "y", .type = TensorType::INT8, .shape = {2}, .scale = {0.25F}, .zero_point = {10}});
  m.op(BuiltinOperator::LEAKY_RELU, {x}, {y}, BuiltinOptions::LeakyReluOptions,
       schema::CreateLeakyReluOptions(m.fbb(), 0.25F).Union());
  const auto out = import_and_run(m.finish({x}, {y}), {{"x", bytes<std::int8_t>({20, -20})}});
  EXPECT_THAT(elements<std::int8_t>(out.at("y")), ElementsAre(50, 0));
}

TEST(TfliteImport, AveragesInt8AsTheIntegerMean) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .type = TensorType::INT8, .shape = {1, 3}, .scale = {1}, .zero_point = {1}});
  const int axis = m.constant<std::int32_t>({1}, {1});
  const int y = m.tensor({.name = "y", .type = TensorType::INT8, .shape = {1}, .scale = {0.5F}, .zero_point = {-5}});
  m.op(BuiltinOperator::MEAN, {x, axis}, {y}, BuiltinOptions::ReducerOptions,
       schema::CreateReducerOptions(m.fbb(), false).Union());
  const auto out = import_and_run(m.finish({x}, {y}), {{"x", bytes<std::int8_t>({5, 6, 9})}});
  // (4 + 5 + 8) / 3 = 5.67, / 0.5 = 11.33, - 5.
  EXPECT_THAT(elements<std::int8_t>(out.at("y")), ElementsAre(6));
}

TEST(TfliteImport, SlicesWithEveryMask) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .type = TensorType::INT32, .shape = {2, 3, 4}});
  const int begin = m.constant<std::int32_t>({4}, {1, 7, 9, -1});
  const int end = m.constant<std::int32_t>({4}, {9, 7, 9, -4});
  const int strides = m.constant<std::int32_t>({4}, {1, 1, 1, -2});
  const int y = m.tensor({.name = "y", .type = TensorType::INT32, .shape = {1, 3, 2}});
  // x[1, newaxis, ..., 3:0:-2]
  m.op(BuiltinOperator::STRIDED_SLICE, {x, begin, end, strides}, {y}, BuiltinOptions::StridedSliceOptions,
       schema::CreateStridedSliceOptions(m.fbb(), 0, 0, 0b100, 0b010, 0b001).Union());
  std::vector<std::byte> input;
  for (std::int32_t i = 0; i < 24; ++i) {
    const auto b = bytes<std::int32_t>({i});
    input.insert(input.end(), b.begin(), b.end());
  }
  const auto out = import_and_run(m.finish({x}, {y}), {{"x", input}});
  EXPECT_THAT(elements<std::int32_t>(out.at("y")), ElementsAre(15, 13, 19, 17, 23, 21));
}

TEST(TfliteImport, FoldsShapeArithmetic) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {1, 6}, .signature = {-1, 6}});
  const int shape = m.tensor({.name = "shape", .type = TensorType::INT32, .shape = {2}});
  const int begin = m.constant<std::int32_t>({1}, {0});
  const int end = m.constant<std::int32_t>({1}, {1});
  const int one = m.constant<std::int32_t>({1}, {1});
  const int batch = m.tensor({.name = "batch", .type = TensorType::INT32, .shape = {}});
  const int rows = m.constant<std::int32_t>({}, {2});
  const int columns = m.constant<std::int32_t>({}, {3});
  const int target = m.tensor({.name = "target", .type = TensorType::INT32, .shape = {3}});
  const int y = m.tensor({.name = "y", .shape = {1, 2, 3}});
  m.op(BuiltinOperator::SHAPE, {x}, {shape});
  m.op(BuiltinOperator::STRIDED_SLICE, {shape, begin, end, one}, {batch}, BuiltinOptions::StridedSliceOptions,
       schema::CreateStridedSliceOptions(m.fbb(), 0, 0, 0, 0, 1).Union());
  m.op(BuiltinOperator::PACK, {batch, rows, columns}, {target}, BuiltinOptions::PackOptions,
       schema::CreatePackOptions(m.fbb(), 3, 0).Union());
  m.op(BuiltinOperator::RESHAPE, {x, target}, {y});
  Options options;
  options.shapes["x"] = {4, 6};
  const auto graph = import_tflite(source_of(m.finish({x}, {y})), options);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(graph->nodes, SizeIs(1));
  EXPECT_EQ(graph::format_desc(graph->value(graph->outputs[0].value).desc), "f32[4,2,3]");
}

/// y = variable, then variable += x; initialised to 5 by a CALL_ONCE subgraph.
std::vector<std::uint8_t> counter_model() {
  ModelBuilder m;
  const auto handle = [&](int tensor) {
    m.op(BuiltinOperator::VAR_HANDLE, {}, {tensor}, BuiltinOptions::VarHandleOptions,
         schema::CreateVarHandleOptions(m.fbb(), 0, m.fbb().CreateString("count")).Union());
  };
  const int x = m.tensor({.name = "x", .shape = {1}});
  const int v = m.tensor({.name = "v", .type = TensorType::RESOURCE});
  const int old = m.tensor({.name = "old", .shape = {1}});
  const int sum = m.tensor({.name = "sum", .shape = {1}});
  const int again = m.tensor({.name = "again", .shape = {1}});
  m.op(BuiltinOperator::CALL_ONCE, {}, {}, BuiltinOptions::CallOnceOptions,
       schema::CreateCallOnceOptions(m.fbb(), 1).Union());
  handle(v);
  m.op(BuiltinOperator::READ_VARIABLE, {v}, {old});
  m.op(BuiltinOperator::ADD, {old, x}, {sum});
  m.op(BuiltinOperator::ASSIGN_VARIABLE, {v, sum}, {});
  m.op(BuiltinOperator::READ_VARIABLE, {v}, {again});
  m.end_subgraph({x}, {old, again});
  const int init_v = m.tensor({.name = "v", .type = TensorType::RESOURCE});
  const int five = m.constant<float>({1}, {5});
  handle(init_v);
  m.op(BuiltinOperator::ASSIGN_VARIABLE, {init_v, five}, {});
  return m.finish({}, {});
}

TEST(TfliteImport, VariablesBecomeStateThatReadsSeeInOrder) {
  const auto graph = import_tflite(source_of(counter_model()), {});
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_THAT(graph->states, SizeIs(1));
  EXPECT_EQ(graph->states[0].name, "count");
  Runner runner(*graph);
  for (const float expected : {5.0F, 7.0F, 9.0F}) {
    const auto outputs = runner.run({{"x", bytes<float>({2})}});
    ASSERT_FALSE(outputs.empty());
    EXPECT_THAT(elements<float>(outputs.at("old")), ElementsAre(expected));
    EXPECT_THAT(elements<float>(outputs.at("again")), ElementsAre(expected + 2));
  }
}

TEST(TfliteImport, ReportsEveryFindingInOnePass) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {2}});
  const int a = m.tensor({.name = "first", .shape = {2}});
  const int b = m.tensor({.name = "second", .shape = {2}});
  const int c = m.tensor({.name = "third", .type = TensorType::COMPLEX64, .shape = {2}});
  m.custom("Frobnicate", {x}, {a});
  m.op(BuiltinOperator::LOCAL_RESPONSE_NORMALIZATION, {a}, {b});
  m.op(BuiltinOperator::CAST, {b}, {c});
  const Error error = import_error(m.finish({x}, {c}));
  EXPECT_EQ(error.code, StatusCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("node 0 'first': operator CUSTOM:Frobnicate"));
  EXPECT_THAT(error.message, HasSubstr("node 1 'second': operator LOCAL_RESPONSE_NORMALIZATION"));
  EXPECT_THAT(error.message, HasSubstr("node 2 'third' (CAST): a result of type COMPLEX64"));
}

TEST(TfliteImport, DoesNotReportWhatFollowsFromAnEarlierFinding) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {2}});
  const int a = m.tensor({.name = "a", .shape = {3, 3}});
  const int y = m.tensor({.name = "y", .shape = {2}});
  const int shape = m.constant<std::int32_t>({1}, {2});
  m.custom("Frobnicate", {x}, {a});
  m.op(BuiltinOperator::RESHAPE, {a, shape}, {y});
  const Error error = import_error(m.finish({x}, {y}));
  EXPECT_THAT(error.message, Not(HasSubstr("\n")));
}

TEST(TfliteImport, OptionsNameValidPorts) {
  const auto file = unary_model(BuiltinOperator::NEG);
  Options options;
  options.shapes["z"] = {3};
  Error error = import_error(file, options);
  EXPECT_THAT(error.message, HasSubstr("no input 'z'"));
  EXPECT_THAT(error.remedy, HasSubstr("'x'"));
  options = {};
  options.states = {{"x", "q"}};
  EXPECT_THAT(import_error(file, options).remedy, HasSubstr("'y'"));
  options = {};
  options.dims["N"] = 3;
  EXPECT_THAT(import_error(file, options).remedy, HasSubstr("inputs: x"));
  options = {};
  options.shapes["x"] = {1, 2, 3};
  EXPECT_THAT(import_error(file, options).message, HasSubstr("3 dimensions"));
  options = {};
  options.values["x"] = {1, 2, 3};
  EXPECT_THAT(import_error(file, options).message, HasSubstr("3 values"));
}

TEST(TfliteImport, PairsPortsIntoStates) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {1}});
  const int h = m.tensor({.name = "h", .shape = {1}});
  const int y = m.tensor({.name = "y", .shape = {1}});
  m.op(BuiltinOperator::ADD, {x, h}, {y});
  Options options;
  options.states = {{"h", "y"}};
  const auto graph = import_tflite(source_of(m.finish({x, h}, {y})), options);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(graph->inputs, SizeIs(1));
  EXPECT_THAT(graph->outputs, SizeIs(0));
  ASSERT_THAT(graph->states, SizeIs(1));
  EXPECT_EQ(graph->states[0].name, "h");
}

TEST(TfliteImport, GivenValuesMakeAnInputConstant) {
  Options options;
  options.values["x"] = {1.5, -2};
  const auto graph = import_tflite(source_of(unary_model(BuiltinOperator::NEG)), options);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(graph->inputs, SizeIs(0));
  const auto y = graph::constant_floats(*graph, graph->outputs[0].value);
  ASSERT_TRUE(y);
  EXPECT_THAT(*y, ElementsAre(-1.5F, 2.0F));
  options.values["x"] = {3};
  const auto filled = import_tflite(source_of(unary_model(BuiltinOperator::NEG)), options);
  ASSERT_TRUE(filled) << filled.error().message;
  EXPECT_THAT(*graph::constant_floats(*filled, filled->outputs[0].value), ElementsAre(-3.0F, -3.0F));
}

TEST(TfliteImport, LstmKeepsItsStateInVariables) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {1, 1, 1}});
  std::vector<std::int32_t> operands(24, -1);
  operands[0] = x;
  for (int i = 1; i <= 8; ++i) operands[static_cast<std::size_t>(i)] = m.constant<float>({1, 1}, {0.0F});
  // Biases: input gate open, forget gate open, cell candidate tanh(0.5), output gate open.
  const float biases[] = {100.0F, 100.0F, 0.5F, 100.0F};
  for (std::size_t i = 0; i < 4; ++i) operands[12 + i] = m.constant<float>({1}, {biases[i]});
  operands[18] = m.tensor({.name = "h", .shape = {1, 1}, .is_variable = true});
  operands[19] = m.tensor({.name = "c", .shape = {1, 1}, .is_variable = true});
  const int y = m.tensor({.name = "y", .shape = {1, 1, 1}});
  m.op(BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM, operands, {y}, BuiltinOptions::UnidirectionalSequenceLSTMOptions,
       schema::CreateUnidirectionalSequenceLSTMOptions(m.fbb(), Activation::TANH).Union());
  const auto graph = import_tflite(source_of(m.finish({x}, {y})), {});
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_THAT(graph->states, SizeIs(2));
  Runner runner(*graph);
  float cell = 0;
  for (int step = 0; step < 3; ++step) {
    const auto outputs = runner.run({{"x", bytes<float>({1})}});
    ASSERT_FALSE(outputs.empty());
    cell += std::tanh(0.5F);
    EXPECT_NEAR(elements<float>(outputs.at("y"))[0], std::tanh(cell), 1e-5F) << step;
  }
}

TEST(TfliteDeclare, WorksForModelsThatCannotBeImported) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {1, 4}, .signature = {-1, 4}});
  const int y = m.tensor({.type = TensorType::INT8, .shape = {1, 4}, .scale = {0.5F}, .zero_point = {-1}});
  m.custom("Frobnicate", {x}, {y});
  const auto declaration = declare_tflite(source_of(m.finish({x}, {y})));
  ASSERT_TRUE(declaration) << declaration.error().message;
  EXPECT_EQ(declaration->format, "TFLite");
  EXPECT_EQ(declaration->version, "schema 3");
  EXPECT_EQ(declaration->producer, "made by a test");
  ASSERT_THAT(declaration->inputs, SizeIs(1));
  EXPECT_THAT(declaration->inputs[0].dims, ElementsAre("?", "4"));
  EXPECT_EQ(declaration->outputs[0].name, "out0");
  ASSERT_TRUE(declaration->outputs[0].quantization);
  EXPECT_THAT(declaration->operators, ElementsAre(std::pair<std::string, std::int64_t>("CUSTOM:Frobnicate", 1)));
}

}  // namespace
}  // namespace bantam::import::tflite
