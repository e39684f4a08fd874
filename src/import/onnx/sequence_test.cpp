// Attention, rotary positions, transforms and number types of ONNX models, against numbers worked out by hand or the
// same computation written out in simpler operators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "graph/testing/interpret.h"
#include "import/import.h"
#include "import/testing/onnx_writer.h"
#include "ops/common/half.h"
#include "ops/nn/attention/attention.h"

namespace bantam::import {
namespace {

using graph::testing::host_tensor;
using graph::testing::HostTensor;
using testing::attr;
using testing::Dim;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using testing::GraphWriter;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::source_of;
using testing::tensor;

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Inputs = std::map<std::string, HostTensor>;

constexpr const char* kContrib = "com.microsoft";

struct Sequence {
  std::string error;
  std::map<std::string, HostTensor> results;
  graph::Graph graph;

  Floats floats(const std::string& name) const {
    const auto elements = results.at(name).as<float>();
    return {elements.begin(), elements.end()};
  }
};

Sequence run_sequence(const GraphWriter& writer, const Inputs& inputs, std::int64_t opset = 17) {
  Sequence outcome;
  auto graph = import_model(source_of(writer.model(opset)), {});
  if (!graph) {
    outcome.error = graph.error().message;
    return outcome;
  }
  outcome.graph = std::move(*graph);
  EXPECT_TRUE(graph::verify(outcome.graph));
  auto results = graph::testing::interpret(outcome.graph, inputs);
  if (results) {
    outcome.results = std::move(*results);
  } else {
    outcome.error = results.error().message;
  }
  return outcome;
}

HostTensor values_of(const Ints& dims, const Floats& values) {
  return host_tensor<float>(dims, std::span<const float>(values));
}

/// Numbers without pattern in [-1, 1].
Floats mixed(std::size_t count, double seed) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(std::sin(seed + 1.7 * static_cast<double>(i)));
  return values;
}

TEST(OnnxAttention, AgreesWithItsProductsWrittenOut) {
  // Two query heads on one key head, two past keys, causal, an additive mask that ends one key early.
  GraphWriter writer;
  writer.input("q", {Dim(1), Dim(2), Dim(3), Dim(4)})
      .input("k", {Dim(1), Dim(1), Dim(3), Dim(4)})
      .input("v", {Dim(1), Dim(1), Dim(3), Dim(4)})
      .input("pk", {Dim(1), Dim(1), Dim(2), Dim(4)})
      .input("pv", {Dim(1), Dim(1), Dim(2), Dim(4)})
      .initializer(tensor<float>("m", {3, 4}, {0, 1, 0, 2, 0, -1, 0, 0, 1, 0, 0, 1}))
      .node("Attention", {"q", "k", "v", "m", "pk", "pv"}, {"y", "nk", "nv"}, {attr("is_causal", 1)})
      .output("y")
      .output("nk");
  const float kOut = -INFINITY;
  writer.initializer(tensor<float>("mask", {3, 5}, {0, 1, 0, kOut, kOut, 0, -1, 0, 0, kOut, 1, 0, 0, 1, kOut}))
      .initializer(tensor<float>("half", {}, {0.5F}))
      .node("Concat", {"pk", "k"}, {"all_k"}, {attr("axis", 2)})
      .node("Concat", {"pv", "v"}, {"all_v"}, {attr("axis", 2)})
      .node("Transpose", {"all_k"}, {"kt"}, {attr("perm", Ints{0, 1, 3, 2})})
      .node("MatMul", {"q", "kt"}, {"raw"})
      .node("Mul", {"raw", "half"}, {"scaled"})
      .node("Add", {"scaled", "mask"}, {"scores"})
      .node("Softmax", {"scores"}, {"weights"}, {attr("axis", -1)})
      .node("MatMul", {"weights", "all_v"}, {"expected"})
      .output("expected");
  const auto outcome = run_sequence(writer,
                                    {{"q", values_of({1, 2, 3, 4}, mixed(24, 0.1))},
                                     {"k", values_of({1, 1, 3, 4}, mixed(12, 0.2))},
                                     {"v", values_of({1, 1, 3, 4}, mixed(12, 0.3))},
                                     {"pk", values_of({1, 1, 2, 4}, mixed(8, 0.4))},
                                     {"pv", values_of({1, 1, 2, 4}, mixed(8, 0.5))}},
                                    23);
  ASSERT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.floats("y"), Pointwise(FloatNear(1e-6F), outcome.floats("expected")));
  EXPECT_EQ(outcome.floats("nk").size(), 20u);
}

TEST(OnnxAttention, SplitsHeadsOfThreeDimensionalOperands) {
  GraphWriter writer;
  writer.input("x", {Dim(1), Dim(2), Dim(4)})
      .initializer(tensor<float>("mask", {2, 2}, {0, -INFINITY, -INFINITY, -INFINITY}))
      .node("Attention", {"x", "x", "x", "mask"}, {"y"}, {attr("q_num_heads", 2), attr("kv_num_heads", 2)})
      .output("y");
  const auto outcome = run_sequence(writer, {{"x", values_of({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}}, 23);
  ASSERT_EQ(outcome.error, "");
  // The first query sees itself only, the second nothing.
  EXPECT_THAT(outcome.floats("y"), ElementsAre(1, 2, 3, 4, 0, 0, 0, 0));
  GraphWriter wrong;
  wrong.input("x", {Dim(1), Dim(2), Dim(4)})
      .node("Attention", {"x", "x", "x"}, {"y"}, {attr("q_num_heads", 3)})
      .output("y");
  EXPECT_THAT(run_sequence(wrong, {}, 23).error, HasSubstr("cannot be split into 3 heads"));
}

TEST(OnnxContribAttention, LeavesMaskedKeysOut) {
  // Queries of zero weigh all keys alike.
  GraphWriter writer;
  writer.input("q", {Dim(2), Dim(1), Dim(2)})
      .input("v", {Dim(2), Dim(3), Dim(2)})
      .initializer(tensor<std::int32_t>("kept", {2, 3}, {1, 0, 1, 0, 0, 1}))
      .initializer(tensor<std::int32_t>("counts", {2}, {1, 2}))
      .node("MultiHeadAttention", {"q", "v", "v", "", "kept"}, {"y"}, {attr("num_heads", 1)}, "a", kContrib)
      .node("MultiHeadAttention", {"q", "v", "v", "", "counts"}, {"z"}, {attr("num_heads", 2)}, "b", kContrib)
      .output("y")
      .output("z");
  const auto outcome = run_sequence(writer, {{"q", values_of({2, 1, 2}, Floats(4))},
                                             {"v", values_of({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})}});
  ASSERT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.floats("y"), ElementsAre(3, 4, 11, 12));
  EXPECT_THAT(outcome.floats("z"), ElementsAre(1, 2, 8, 9));
}

TEST(OnnxContribAttention, GroupQueryNeedsAFullCache) {
  const auto model = [](std::int32_t total) {
    GraphWriter writer;
    writer.input("q", {Dim(1), Dim(1), Dim(4)})
        .input("k", {Dim(1), Dim(1), Dim(2)})
        .input("past", {Dim(1), Dim(1), Dim(2), Dim(2)})
        .initializer(tensor<std::int32_t>("last", {1}, {total - 1}))
        .initializer(tensor<std::int32_t>("total", {}, {total}))
        .node("GroupQueryAttention", {"q", "k", "k", "past", "past", "last", "total"}, {"y", "pk", "pv"},
              {attr("num_heads", 2), attr("kv_num_heads", 1)}, "g", kContrib)
        .output("y");
    return writer;
  };
  const Inputs inputs = {{"q", values_of({1, 1, 4}, Floats(4))},
                         {"k", values_of({1, 1, 2}, {3, 6})},
                         {"past", values_of({1, 1, 2, 2}, {0, 1, 6, 2})}};
  const auto outcome = run_sequence(model(3), inputs);
  ASSERT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.floats("y"), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(run_sequence(model(2), inputs).error, HasSubstr("a cache of 2 keys"));
}

TEST(OnnxRotary, TurnsHalvesOrNeighbours) {
  for (const bool interleaved : {false, true}) {
    GraphWriter writer;
    // Position 1 turns by a right angle.
    writer.input("x", {Dim(1), Dim(1), Dim(5)})
        .initializer(tensor<float>("cos", {2, 2}, {1, 1, 0, 0}))
        .initializer(tensor<float>("sin", {2, 2}, {0, 0, 1, 1}))
        .initializer(tensor<std::int64_t>("at", {1, 1}, {1}))
        .node("RotaryEmbedding", {"x", "cos", "sin", "at"}, {"y"},
              {attr("interleaved", interleaved ? 1 : 0), attr("num_heads", 1), attr("rotary_embedding_dim", 4)})
        .output("y");
    const auto outcome = run_sequence(writer, {{"x", values_of({1, 1, 5}, {1, 2, 3, 4, 5})}}, 23);
    ASSERT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.floats("y"), interleaved ? Floats({-2, 1, -4, 3, 5}) : Floats({-3, -4, 1, 2, 5}));
  }
}

TEST(OnnxSignal, TransformsAlongAnyAxis) {
  GraphWriter writer;
  writer.input("x", {Dim(2), Dim(2), Dim(1)})
      .initializer(tensor<std::int64_t>("axis", {}, {0}))
      .initializer(tensor<std::int64_t>("length", {}, {4}))
      .node("DFT", {"x", "length", "axis"}, {"y"}, {attr("onesided", 1)})
      .node("DFT", {"y", "length", "axis"}, {"z"}, {attr("onesided", 1), attr("inverse", 1)})
      .output("y")
      .output("z");
  const auto outcome = run_sequence(writer, {{"x", values_of({2, 2, 1}, {1, 2, 3, 4})}}, 20);
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.results.at("y").desc.dims[0], 3);
  // Columns 1, 3, 0, 0 and 2, 4, 0, 0.
  EXPECT_THAT(outcome.floats("y"), Pointwise(FloatNear(1e-6F), Floats{4, 0, 6, 0, 1, -3, 2, -4, -2, 0, -2, 0}));
  EXPECT_THAT(outcome.floats("z"), Pointwise(FloatNear(1e-6F), Floats{1, 2, 3, 4, 0, 0, 0, 0}));
}

TEST(OnnxSignal, RefusesTheAxisOfTheParts) {
  GraphWriter writer;
  writer.input("x", {Dim(2), Dim(2)}).node("DFT", {"x"}, {"y"}, {attr("axis", 1)}).output("y");
  EXPECT_THAT(run_sequence(writer, {}).error, HasSubstr("axis 1 of f32[2,2] is that of real and imaginary parts"));
}

TEST(OnnxTypes, HalfIsStorageOfPortsOnly) {
  const auto half = [](const Floats& values) {
    std::vector<std::uint16_t> bits;
    for (const float v : values) bits.push_back(ops::to_half(v).bits);
    return bits;
  };
  const auto bytes_of = [](const std::vector<std::uint16_t>& bits) {
    return std::string_view(reinterpret_cast<const char*>(bits.data()), bits.size() * 2);
  };
  const auto weights = half({0.5F, 2048});
  GraphWriter writer;
  writer.input("x", {Dim(1), Dim(2)}, ElementType::kF16)
      .initializer(testing::raw_tensor("w", ElementType::kF16, {2, 1}, bytes_of(weights)))
      .node("MatMul", {"x", "w"}, {"sum"})
      .node("Sub", {"sum", "w"}, {"y"})
      .output("y", ElementType::kF16);
  const auto x = half({1, 1});
  HostTensor input{};
  input.desc.type = ElementType::kF16;
  input.desc.rank = 2;
  input.desc.dims[0] = 1;
  input.desc.dims[1] = 2;
  input.desc.set_dense_strides();
  input.bytes.resize(4);
  std::memcpy(input.bytes.data(), x.data(), 4);
  const auto outcome = run_sequence(writer, {{"x", input}});
  ASSERT_EQ(outcome.error, "");
  const HostTensor& y = outcome.results.at("y");
  ASSERT_EQ(y.desc.type, ElementType::kF16);
  // The sum, 2048.5, is no half: it is not rounded before the difference.
  std::uint16_t bits[2];
  std::memcpy(bits, y.bytes.data(), 4);
  EXPECT_EQ(ops::to_f32(ops::Half{bits[0]}), 2048);
  EXPECT_EQ(ops::to_f32(ops::Half{bits[1]}), 0.5F);
}

TEST(OnnxTypes, DoublesWithoutAKernelAreComputedAsFloats) {
  GraphWriter writer;
  writer.input("x", {Dim(1), Dim(1), Dim(1), Dim(2)}, ElementType::kF64)
      .initializer(tensor<double>("w", {1, 1, 1, 2}, {2, 3}))
      .node("Conv", {"x", "w"}, {"y"})
      .output("y", ElementType::kF64);
  const double x[] = {10, 100};
  const auto outcome = run_sequence(writer, {{"x", host_tensor<double>(Ints{1, 1, 1, 2}, x)}});
  ASSERT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.results.at("y").as<double>(), ElementsAre(320));
}

}  // namespace
}  // namespace bantam::import
