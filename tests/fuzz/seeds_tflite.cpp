#include "seeds_tflite.h"

#include <string>

#include "import/tflite/testing/model_builder.h"

namespace bantam::fuzz {
namespace {

namespace schema = import::tflite::schema;
using import::tflite::testing::Activation;
using import::tflite::testing::BuiltinOperator;
using import::tflite::testing::BuiltinOptions;
using import::tflite::testing::ModelBuilder;
using import::tflite::testing::Padding;
using import::tflite::testing::TensorSpec;
using import::tflite::testing::TensorType;

using Files = std::vector<std::vector<std::uint8_t>>;

constexpr int kLastOperator = 161;

TensorSpec activation(TensorType type, std::vector<std::int32_t> shape) {
  TensorSpec spec{.name = "t", .type = type, .shape = std::move(shape)};
  if (type == TensorType::INT8) {
    spec.scale = {0.5F};
    spec.zero_point = {-3};
  }
  return spec;
}

/// x, and behind it a constant per element of `constants`, through one operator.
void add_call(Files& files, BuiltinOperator code, TensorType type, int constants) {
  ModelBuilder m;
  const TensorSpec spec = activation(type, {1, 4, 4, 2});
  const int x = m.tensor(spec);
  std::vector<std::int32_t> operands{x};
  if (constants >= 1) operands.push_back(m.constant<std::int32_t>({4}, {0, 1, 2, 3}));
  if (constants >= 2) operands.push_back(m.constant<std::int32_t>({4}, {1, 2, 2, 1}));
  const int y = m.tensor(spec);
  m.op(code, operands, {y});
  files.push_back(m.finish({x}, {y}));
}

void add_pair(Files& files, BuiltinOperator code, TensorType type) {
  ModelBuilder m;
  const TensorSpec spec = activation(type, {2, 3});
  const int a = m.tensor(spec);
  const int b = m.tensor(spec);
  const int y = m.tensor(spec);
  m.op(code, {a, b}, {y});
  files.push_back(m.finish({a, b}, {y}));
}

void add_every_operator(Files& files) {
  for (int code = 0; code <= kLastOperator; ++code) {
    const auto op = static_cast<BuiltinOperator>(code);
    for (const TensorType type : {TensorType::FLOAT32, TensorType::INT8}) {
      add_pair(files, op, type);
      for (const int constants : {0, 1, 2}) add_call(files, op, type, constants);
    }
  }
}

void add_float_network(Files& files) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {1, 4, 4, 1}});
  const int w = m.constant<float>({2, 2, 2, 1}, {1, 2, 3, 4, -1, -2, -3, -4});
  const int bias = m.constant<float>({2}, {0.5F, -0.5F});
  const int c = m.tensor({.name = "c", .shape = {1, 2, 2, 2}});
  m.op(BuiltinOperator::CONV_2D, {x, w, bias}, {c}, BuiltinOptions::Conv2DOptions,
       schema::CreateConv2DOptions(m.fbb(), Padding::SAME, 2, 2, Activation::RELU6).Union());
  const int dw = m.constant<float>({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const int d = m.tensor({.name = "d", .shape = {1, 2, 2, 2}});
  m.op(BuiltinOperator::DEPTHWISE_CONV_2D, {c, dw, bias}, {d}, BuiltinOptions::DepthwiseConv2DOptions,
       schema::CreateDepthwiseConv2DOptions(m.fbb(), Padding::SAME, 1, 1).Union());
  const int p = m.tensor({.name = "p", .shape = {1, 1, 1, 2}});
  m.op(BuiltinOperator::AVERAGE_POOL_2D, {d}, {p}, BuiltinOptions::Pool2DOptions,
       schema::CreatePool2DOptions(m.fbb(), Padding::VALID, 2, 2, 2, 2).Union());
  const int shape = m.constant<std::int32_t>({2}, {1, -1});
  const int flat = m.tensor({.name = "flat", .shape = {1, 2}});
  m.op(BuiltinOperator::RESHAPE, {p, shape}, {flat});
  const int fw = m.constant<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const int f = m.tensor({.name = "f", .shape = {1, 3}});
  m.op(BuiltinOperator::FULLY_CONNECTED, {flat, fw, -1}, {f}, BuiltinOptions::FullyConnectedOptions,
       schema::CreateFullyConnectedOptions(m.fbb(), Activation::RELU, 0, true).Union());
  const int y = m.tensor({.name = "y", .shape = {1, 3}});
  m.op(BuiltinOperator::SOFTMAX, {f}, {y}, BuiltinOptions::SoftmaxOptions,
       schema::CreateSoftmaxOptions(m.fbb(), 1.0F).Union());
  files.push_back(m.finish({x}, {y}));
}

void add_int8_network(Files& files) {
  ModelBuilder m;
  const int x = m.tensor(activation(TensorType::INT8, {1, 3, 3, 2}));
  const int w = m.constant<std::int8_t>({2, 1, 1, 2}, {1, 2, -3, 4}, {.scale = {0.5F, 0.25F}, .zero_point = {0, 0}});
  const int bias = m.constant<std::int32_t>({2}, {6, -2}, {.scale = {0.25F, 0.125F}, .zero_point = {0, 0}});
  const int c = m.tensor(activation(TensorType::INT8, {1, 3, 3, 2}));
  m.op(BuiltinOperator::CONV_2D, {x, w, bias}, {c}, BuiltinOptions::Conv2DOptions,
       schema::CreateConv2DOptions(m.fbb(), Padding::VALID, 1, 1, Activation::RELU).Union());
  const int sum = m.tensor(activation(TensorType::INT8, {1, 3, 3, 2}));
  m.op(BuiltinOperator::ADD, {c, x}, {sum}, BuiltinOptions::AddOptions,
       schema::CreateAddOptions(m.fbb(), Activation::RELU6).Union());
  const int axes = m.constant<std::int32_t>({2}, {1, 2});
  const int mean = m.tensor(activation(TensorType::INT8, {1, 2}));
  m.op(BuiltinOperator::MEAN, {sum, axes}, {mean}, BuiltinOptions::ReducerOptions,
       schema::CreateReducerOptions(m.fbb(), false).Union());
  const int y = m.tensor({.name = "y", .shape = {1, 2}});
  m.op(BuiltinOperator::DEQUANTIZE, {mean}, {y});
  files.push_back(m.finish({x}, {y}));
}

void add_slices(Files& files) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {2, 3, 4}});
  const int begin = m.constant<std::int32_t>({3}, {0, -3, 1});
  const int end = m.constant<std::int32_t>({3}, {2, 3, 3});
  const int strides = m.constant<std::int32_t>({3}, {1, 2, 1});
  const int s = m.tensor({.name = "s", .shape = {2, 2, 2}});
  m.op(BuiltinOperator::STRIDED_SLICE, {x, begin, end, strides}, {s}, BuiltinOptions::StridedSliceOptions,
       schema::CreateStridedSliceOptions(m.fbb(), 0, 1, 0, 0, 0).Union());
  const int joined = m.tensor({.name = "joined", .shape = {4, 2, 2}});
  m.op(BuiltinOperator::CONCATENATION, {s, s}, {joined}, BuiltinOptions::ConcatenationOptions,
       schema::CreateConcatenationOptions(m.fbb(), 0).Union());
  const int indices = m.constant<std::int32_t>({2}, {3, 0});
  const int y = m.tensor({.name = "y", .shape = {2, 2, 2}});
  m.op(BuiltinOperator::GATHER, {joined, indices}, {y}, BuiltinOptions::GatherOptions,
       schema::CreateGatherOptions(m.fbb(), 0).Union());
  files.push_back(m.finish({x}, {y}));
}

void add_variable(Files& files) {
  ModelBuilder m;
  const auto handle = [&] {
    const int tensor = m.tensor({.type = TensorType::INT32});
    m.op(BuiltinOperator::VAR_HANDLE, {}, {tensor}, BuiltinOptions::VarHandleOptions,
         schema::CreateVarHandleOptions(m.fbb(), 0, m.fbb().CreateString("count")).Union());
    return tensor;
  };
  const int x = m.tensor({.name = "x", .shape = {2}});
  const int old = m.tensor({.name = "old", .shape = {2}});
  const int sum = m.tensor({.name = "sum", .shape = {2}});
  m.op(BuiltinOperator::CALL_ONCE, {}, {}, BuiltinOptions::CallOnceOptions,
       schema::CreateCallOnceOptions(m.fbb(), 1).Union());
  const int v = handle();
  m.op(BuiltinOperator::READ_VARIABLE, {v}, {old});
  m.op(BuiltinOperator::ADD, {old, x}, {sum});
  m.op(BuiltinOperator::ASSIGN_VARIABLE, {v, sum}, {});
  m.end_subgraph({x}, {sum});
  const int init_v = handle();
  const int five = m.constant<float>({2}, {5, 5});
  m.op(BuiltinOperator::ASSIGN_VARIABLE, {init_v, five}, {});
  files.push_back(m.finish({}, {}));
}

}  // namespace

Files tflite_seeds() {
  Files files;
  for (const auto add : {add_every_operator, add_float_network, add_int8_network, add_slices, add_variable}) add(files);
  return files;
}

}  // namespace bantam::fuzz
