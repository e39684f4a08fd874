// Values of imported operators against numbers worked out by hand, above all for forms that the standard's own node
// tests (tests/conformance) do not have: older operator sets, one-dimensional images, com.microsoft.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "graph/testing/interpret.h"
#include "import/import.h"
#include "import/testing/onnx_writer.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/matmul/matmul.h"

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
using testing::source_of;
using testing::tensor;

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

/// One node with the operands "x", "a", "b", ... of which all but x are constant.
struct OneNode {
  std::string op;
  Ints dims;  ///< of x, which is float
  Floats x;
  std::vector<std::string> constants{};  ///< serialised tensors named a, b, ...; empty for an absent operand
  std::vector<std::string> attributes{};
  std::int64_t opset = 17;
  std::string domain{};
};

struct Outcome {
  Ints dims;
  Floats elements;
  std::string error;
  graph::Graph graph;
};

Outcome run(const OneNode& test, int result = 0) {
  GraphWriter writer;
  std::vector<Dim> dims(test.dims.begin(), test.dims.end());
  writer.input("x", dims);
  std::vector<std::string> operands = {"x"};
  for (std::size_t i = 0; i < test.constants.size(); ++i) {
    operands.emplace_back(test.constants[i].empty() ? "" : std::string(1, static_cast<char>('a' + i)));
    if (!test.constants[i].empty()) writer.initializer(test.constants[i]);
  }
  std::vector<std::string> results(static_cast<std::size_t>(result) + 1);
  results.back() = "y";
  writer.node(test.op, operands, results, test.attributes, "node", test.domain).output("y");
  Outcome outcome;
  auto graph = import_model(source_of(writer.model(test.opset)), {});
  if (!graph) {
    outcome.error = graph.error().message;
    return outcome;
  }
  outcome.graph = std::move(*graph);
  EXPECT_TRUE(graph::verify(outcome.graph));
  auto found =
      graph::testing::interpret(outcome.graph, {{"x", host_tensor<float>(test.dims, std::span<const float>(test.x))}});
  if (!found) {
    outcome.error = found.error().message;
    return outcome;
  }
  const HostTensor& y = found->at("y");
  outcome.dims.assign(y.desc.dims, y.desc.dims + y.desc.rank);
  const auto elements = y.as<float>();
  outcome.elements.assign(elements.begin(), elements.end());
  return outcome;
}

Floats count(int n) {
  Floats result(static_cast<std::size_t>(n));
  std::iota(result.begin(), result.end(), 1.0F);
  return result;
}

TEST(OnnxConv, OneDimensionalImagesHaveHeightOne) {
  const auto y = run({"Conv",
                      {1, 2, 4},
                      count(8),
                      {tensor<float>("a", {1, 2, 3}, {1, 0, -1, 1, 1, 1}), tensor<float>("b", {1}, {10})},
                      {attr("pads", Ints{1, 0}), attr("strides", Ints{2})}});
  ASSERT_EQ(y.error, "");
  EXPECT_EQ(y.dims, (Ints{1, 1, 2}));
  // Row 1 padded: 0 1 2 3 4, row 2: 0 5 6 7 8.
  EXPECT_THAT(y.elements, ElementsAre(10 + (0 - 2) + (0 + 5 + 6), 10 + (2 - 4) + (6 + 7 + 8)));
}

TEST(OnnxConv, OneFilterPerChannelIsDepthwise) {
  const auto y =
      run({"Conv", {1, 2, 2, 2}, count(8), {tensor<float>("a", {4, 1, 1, 1}, {1, 2, 3, 4})}, {attr("group", 2)}});
  ASSERT_EQ(y.error, "");
  EXPECT_THAT(y.elements, ElementsAre(1, 2, 3, 4, 2, 4, 6, 8, 15, 18, 21, 24, 20, 24, 28, 32));
  EXPECT_TRUE(std::any_of(y.graph.nodes.begin(), y.graph.nodes.end(),
                          [](const auto& n) { return n.is(ops::kDepthwiseConv2d); }));
}

TEST(OnnxConv, OneFilterOfOneChannelIsDepthwiseWhereWindowsAreClose) {
  const auto filtered = [](std::int64_t stride) {
    return run(
        {"Conv", {1, 1, 7}, count(7), {tensor<float>("a", {1, 1, 2}, {1, 10})}, {attr("strides", Ints{stride})}});
  };
  const auto is_depthwise = [](const auto& run) {
    return std::any_of(run.graph.nodes.begin(), run.graph.nodes.end(),
                       [](const auto& n) { return n.is(ops::kDepthwiseConv2d); });
  };
  const auto close = filtered(2);
  const auto apart = filtered(5);
  ASSERT_EQ(close.error + apart.error, "");
  EXPECT_TRUE(is_depthwise(close));
  EXPECT_FALSE(is_depthwise(apart));
  EXPECT_THAT(close.elements, ElementsAre(21, 43, 65));
  EXPECT_THAT(apart.elements, ElementsAre(21, 76));
}

TEST(OnnxConv, SamePaddingGoesToTheSideThatIsAskedFor) {
  const auto with = [](const char* mode) {
    return run({"Conv", {1, 1, 1, 3}, {1, 2, 3}, {tensor<float>("a", {1, 1, 1, 2}, {10, 1})}, {attr("auto_pad", mode)}})
        .elements;
  };
  EXPECT_THAT(with("SAME_UPPER"), ElementsAre(12, 23, 30));
  EXPECT_THAT(with("SAME_LOWER"), ElementsAre(1, 12, 23));
  EXPECT_THAT(with("VALID"), ElementsAre(12, 23));
}

TEST(OnnxConv, WeightsMayBeComputedAtRunTime) {
  auto graph = import_model(source_of(GraphWriter()
                                          .input("x", {1, 1, 1, 3})
                                          .input("w", {1, 1, 1, 2})
                                          .node("Conv", {"x", "w"}, {"y"})
                                          .output("y")
                                          .model()),
                            {});
  ASSERT_TRUE(graph) << graph.error().message;
}

TEST(OnnxConv, FusedConvAddsThenActivates) {
  const auto y = run({"FusedConv",
                      {1, 1, 1, 2},
                      {1, -5},
                      {tensor<float>("a", {1, 1, 1, 1}, {2}), "", tensor<float>("c", {1, 1, 1, 2}, {1, 1})},
                      {attr("activation", "Relu")},
                      17,
                      "com.microsoft"});
  ASSERT_EQ(y.error, "");
  EXPECT_THAT(y.elements, ElementsAre(3, 0));
}

TEST(OnnxBinary, OldOperatorSetsPlaceTheSecondOperandByAxis) {
  const auto add = [](std::vector<std::string> attributes, std::int64_t opset) {
    return run({"Add", {2, 2}, {1, 2, 3, 4}, {tensor<float>("a", {2}, {10, 20})}, std::move(attributes), opset});
  };
  EXPECT_THAT(add({attr("broadcast", 1)}, 6).elements, ElementsAre(11, 22, 13, 24));
  EXPECT_THAT(add({attr("broadcast", 1), attr("axis", 0)}, 6).elements, ElementsAre(11, 12, 23, 24));
  EXPECT_NE(add({attr("broadcast", 1), attr("axis", 2)}, 6).error, "");
  EXPECT_NE(add({attr("broadcast", 1), attr("axis", 0)}, 7).error, "") << "an attribute that the set does not have";
}

TEST(OnnxBatchNorm, BecomesOneProductAndOneSum) {
  const auto y = run({"BatchNormalization",
                      {1, 2, 1, 2},
                      {1, 2, 3, 4},
                      {tensor<float>("a", {2}, {2, 1}), tensor<float>("b", {2}, {0.5, 0}),
                       tensor<float>("c", {2}, {1, 2}), tensor<float>("d", {2}, {4, 1})},
                      {attr("epsilon", 0.0F)}});
  ASSERT_EQ(y.error, "");
  EXPECT_THAT(y.elements, ElementsAre(0.5, 1.5, 1, 2));
  EXPECT_EQ(y.graph.nodes.size(), 2U);
}

TEST(OnnxDropout, PassesNumbersOnUnlessItWouldDropSome) {
  const auto drop = [](float ratio, bool training) {
    const std::string mode =
        testing::raw_tensor("b", ElementType::kBool, {}, std::string_view(training ? "\1" : "\0", 1));
    return run({"Dropout", {3}, {1, 2, 3}, {tensor<float>("a", {}, {ratio}), mode}, {}});
  };
  EXPECT_THAT(drop(0.5F, false).elements, ElementsAre(1, 2, 3));
  EXPECT_THAT(drop(0, true).elements, ElementsAre(1, 2, 3));
  EXPECT_THAT(drop(0.5F, true).error, HasSubstr("only a ratio of 0"));
}

TEST(OnnxGemm, BiasOfOneRowIsFused) {
  const auto y = run({"Gemm",
                      {2, 2},
                      {1, 2, 3, 4},
                      {tensor<float>("a", {2, 2}, {1, 0, 1, 1}), tensor<float>("b", {2}, {1, 2})},
                      {attr("transB", 1), attr("alpha", 2.0F), attr("beta", 10.0F)}});
  ASSERT_EQ(y.error, "");
  EXPECT_THAT(y.elements, ElementsAre(12, 26, 16, 34));
  ASSERT_EQ(y.graph.nodes.size(), 1U);
  EXPECT_TRUE(y.graph.nodes[0].is(ops::kMatmul));
}

TEST(OnnxGemm, FullMatrixIsAdded) {
  const auto y =
      run({"Gemm", {1, 2}, {1, 2}, {tensor<float>("a", {2, 2}, {1, 2, 3, 4}), tensor<float>("b", {1, 1}, {5})}});
  EXPECT_THAT(y.elements, ElementsAre(12, 15));
}

TEST(OnnxMatMul, VectorsLoseTheirAxis) {
  const auto y = run({"MatMul", {3}, {1, 2, 3}, {tensor<float>("a", {3}, {4, 5, 6})}});
  EXPECT_EQ(y.dims, Ints{});
  EXPECT_THAT(y.elements, ElementsAre(32));
  EXPECT_EQ(run({"MatMul", {3}, {1, 2, 3}, {tensor<float>("a", {2, 3, 1}, count(6))}}).dims, (Ints{2, 1}));
}

TEST(OnnxSoftmax, OldOperatorSetsNormaliseEverythingBehindTheAxis) {
  const auto old = run({"Softmax", {1, 2, 2}, {0, 0, 0, 0}, {}, {}, 11});
  EXPECT_THAT(old.elements, ElementsAre(0.25F, 0.25F, 0.25F, 0.25F));
  const auto now = run({"Softmax", {1, 2, 2}, {0, 0, 0, 0}, {}, {}, 13});
  EXPECT_THAT(now.elements, ElementsAre(0.5F, 0.5F, 0.5F, 0.5F));
}

TEST(OnnxOldForms, AttributesInsteadOfOperands) {
  EXPECT_THAT(run({"Clip", {3}, {-9, 0, 9}, {}, {attr("min", -1.0F), attr("max", 2.0F)}, 9}).elements,
              ElementsAre(-1, 0, 2));
  EXPECT_THAT(run({"Pad", {2}, {1, 2}, {}, {attr("pads", Ints{1, 0}), attr("value", 7.0F)}, 9}).elements,
              ElementsAre(7, 1, 2));
  EXPECT_THAT(run({"Slice", {4}, count(4), {}, {attr("starts", Ints{-3}), attr("ends", Ints{100})}, 9}).elements,
              ElementsAre(2, 3, 4));
  EXPECT_THAT(run({"Split", {4}, count(4), {}, {attr("split", Ints{1, 3})}, 11}, 1).elements, ElementsAre(2, 3, 4));
  EXPECT_EQ(run({"Squeeze", {1, 2, 1}, count(2), {}, {attr("axes", Ints{2})}, 11}).dims, (Ints{1, 2}));
  EXPECT_EQ(run({"Unsqueeze", {2}, count(2), {}, {attr("axes", Ints{0, 2})}, 11}).dims, (Ints{1, 2, 1}));
  EXPECT_THAT(run({"TopK", {3}, {1, 3, 2}, {}, {attr("k", 2)}, 9}).elements, ElementsAre(3, 2));
  EXPECT_THAT(run({"ReduceSum", {2, 2}, count(4), {}, {attr("axes", Ints{0}), attr("keepdims", 0)}, 11}).elements,
              ElementsAre(4, 6));
  EXPECT_THAT(run({"Upsample", {1, 1, 1, 2}, {1, 2}, {}, {attr("scales", Floats{1, 1, 1, 2})}, 7}).elements,
              ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(run({"Upsample", {1, 1, 1, 2}, {1, 2}, {tensor<float>("a", {4}, {1, 1, 1, 2})}, {}, 9}).elements,
              ElementsAre(1, 1, 2, 2));
}

TEST(OnnxSlice, StepsAndEndsFollowPython) {
  const auto slice = [](const Ints& start, const Ints& end, const Ints& step) {
    return run({"Slice",
                {5},
                count(5),
                {tensor("a", {1}, start), tensor("b", {1}, end), tensor<std::int64_t>("c", {1}, {0}),
                 tensor("d", {1}, step)}})
        .elements;
  };
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(slice({0}, {kMax}, {2}), ElementsAre(1, 3, 5));
  EXPECT_THAT(slice({-1}, {kMin}, {-2}), ElementsAre(5, 3, 1));
  EXPECT_THAT(slice({kMax}, {0}, {-1}), ElementsAre(5, 4, 3, 2));
  EXPECT_THAT(slice({-2}, {-1}, {1}), ElementsAre(4));
  EXPECT_THAT(slice({3}, {1}, {1}), ElementsAre());
  EXPECT_THAT(slice({0}, {kMax}, {kMax}), ElementsAre(1));
  EXPECT_THAT(slice({4}, {kMin}, {kMin}), ElementsAre(5));
}

TEST(OnnxSlice, WindowOfFixedSizeMayMoveAtRunTime) {
  // x[start - 1 : (start - 1) + 2] with start an input.
  auto graph = import_model(source_of(GraphWriter()
                                          .input("x", {5})
                                          .input("start", {1}, ElementType::kI64)
                                          .initializer(tensor<std::int64_t>("one", {1}, {1}))
                                          .initializer(tensor<std::int64_t>("two", {1}, {2}))
                                          .node("Sub", {"start", "one"}, {"from"})
                                          .node("Add", {"two", "from"}, {"to"})
                                          .node("Slice", {"x", "from", "to"}, {"y"})
                                          .output("y")
                                          .model()),
                            {});
  ASSERT_TRUE(graph) << graph.error().message;
  for (std::int64_t start = 1; start <= 5; ++start) {
    const auto x = count(5);
    const Ints five = {5};
    const Ints one = {1};
    auto y = graph::testing::interpret(*graph, {{"x", host_tensor<float>(five, std::span<const float>(x))},
                                                {"start", host_tensor<std::int64_t>(one, {&start, 1})}});
    if (start == 5) {
      EXPECT_FALSE(y) << "the window leaves the tensor";
      continue;
    }
    ASSERT_TRUE(y) << y.error().message;
    EXPECT_EQ(y->at("y").as<float>()[0], static_cast<float>(start));
    EXPECT_EQ(y->at("y").as<float>()[1], static_cast<float>(start + 1));
  }
}

TEST(OnnxReshape, CopiesInfersAndRefuses) {
  const auto reshape = [](const Ints& shape) {
    const auto size = static_cast<std::int64_t>(shape.size());
    return run({"Reshape", {2, 3}, count(6), {tensor("a", {size}, shape)}});
  };
  EXPECT_EQ(reshape({0, -1, 1}).dims, (Ints{2, 3, 1}));
  EXPECT_EQ(reshape({-1}).dims, Ints{6});
  EXPECT_THAT(reshape({4, -1}).error, HasSubstr("does not divide the 6 elements"));
  EXPECT_THAT(reshape({-1, -1}).error, HasSubstr("is not valid"));
  EXPECT_THAT(reshape({6, 1, 0}).error, HasSubstr("copies dimension 2"));
  EXPECT_THAT(reshape({std::numeric_limits<std::int64_t>::max(), 3}).error, HasSubstr("is not valid"));
}

TEST(OnnxResize, AspectRatioMayBeKept) {
  const auto resize = [](const char* policy) {
    return run({"Resize",
                {1, 1, 2, 4},
                count(8),
                {"", "", tensor<std::int64_t>("c", {2}, {4, 4})},
                {attr("axes", Ints{2, 3}), attr("keep_aspect_ratio_policy", policy)},
                18})
        .dims;
  };
  EXPECT_EQ(resize("stretch"), (Ints{1, 1, 4, 4}));
  EXPECT_EQ(resize("not_larger"), (Ints{1, 1, 2, 4}));
  EXPECT_EQ(resize("not_smaller"), (Ints{1, 1, 4, 8}));
}

TEST(OnnxQuantize, ConvolutionRescalesOnceAndRoundsHalfToEven) {
  // x = (5, 7) - 3 = (2, 4); w = -2; sums -4 and -8 and bias 1 give -3, -7; times 0.5 * 0.5 / 0.5: -1.5, -3.5.
  GraphWriter writer;
  writer.input("x", {1, 1, 1, 2}, ElementType::kU8)
      .initializer(tensor<float>("xs", {}, {0.5F}))
      .initializer(tensor<std::uint8_t>("xz", {}, {3}))
      .initializer(tensor<std::int8_t>("w", {1, 1, 1, 1}, {-2}))
      .initializer(tensor<float>("ws", {1}, {0.5F}))
      .initializer(tensor<std::int8_t>("wz", {1}, {0}))
      .initializer(tensor<float>("ys", {}, {0.5F}))
      .initializer(tensor<std::uint8_t>("yz", {}, {100}))
      .initializer(tensor<std::int32_t>("bias", {1}, {1}))
      .node("QLinearConv", {"x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "bias"}, {"y"})
      .output("y", ElementType::kU8);
  auto graph = import_model(source_of(writer.model()), {});
  ASSERT_TRUE(graph) << graph.error().message;
  const std::uint8_t x[] = {5, 7};
  const Ints dims = {1, 1, 1, 2};
  auto y = graph::testing::interpret(*graph, {{"x", host_tensor<std::uint8_t>(dims, x)}});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_THAT(y->at("y").as<std::uint8_t>(), ElementsAre(98, 96));
}

TEST(OnnxLstm, TakesTheActivationsOfTheStandard) {
  const auto lstm = [](const std::vector<std::string>& attributes) {
    return run({"LSTM",
                {1, 1, 1},
                {1},
                {tensor<float>("a", {1, 4, 1}, {1, 1, 1, 1}), tensor<float>("b", {1, 4, 1}, {0, 0, 0, 0})},
                attributes});
  };
  EXPECT_THAT(lstm({attr("activations", std::vector<std::string>{"Sigmoid", "Swish", "Tanh"})}).error,
              HasSubstr("activation 'Swish' is not one of the standard's"));
  EXPECT_THAT(lstm({attr("activations", std::vector<std::string>{"Sigmoid", "Tanh"})}).error,
              HasSubstr("'activations' has 2 names, expected 3"));
  EXPECT_THAT(lstm({attr("hidden_size", 2)}).error, HasSubstr("attribute 'hidden_size' = 2 does not agree"));
  const auto y =
      lstm({attr("hidden_size", 1), attr("activations", std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"})});
  ASSERT_EQ(y.error, "");
  const float s = 1.0F / (1.0F + std::exp(-1.0F));
  EXPECT_THAT(y.elements, ElementsAre(FloatNear(s * std::tanh(s * std::tanh(1.0F)), 1e-6F)));
  // alpha and beta belong to the functions that take them: hard sigmoid 0.1 x + 0.3, then 2 x + 1 of the cell.
  const auto other = lstm({attr("activations", std::vector<std::string>{"HardSigmoid", "RELU", "Affine"}),
                           attr("activation_alpha", std::vector<float>{0.1F, 2.0F}),
                           attr("activation_beta", std::vector<float>{0.3F, 1.0F})});
  ASSERT_EQ(other.error, "");
  EXPECT_THAT(other.elements, ElementsAre(FloatNear(0.4F * (2 * 0.4F + 1), 1e-6F)));
}

TEST(OnnxEinsum, ContractsSumsAndTakesDiagonals) {
  const auto einsum = [](const char* equation, const Ints& dims, const std::vector<std::string>& others = {}) {
    int n = 1;
    for (const auto d : dims) n *= static_cast<int>(d);
    return run({"Einsum", dims, count(n), others, {attr("equation", equation)}});
  };
  EXPECT_THAT(einsum("ij->ji", {2, 3}).elements, ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(einsum("ij->", {2, 3}).elements, ElementsAre(21));
  EXPECT_THAT(einsum("ii->i", {2, 2}).elements, ElementsAre(1, 4));
  EXPECT_THAT(einsum("ii", {2, 2}).elements, ElementsAre(5));
  EXPECT_THAT(einsum("ij,jk", {1, 2}, {tensor<float>("a", {2, 2}, {1, 2, 3, 4})}).elements, ElementsAre(7, 10));
  EXPECT_THAT(einsum("...ij,j->...i", {1, 2, 2}, {tensor<float>("a", {2}, {1, 10})}).elements, ElementsAre(21, 43));
  EXPECT_THAT(einsum("i,j,k->kji", {2}, {tensor<float>("a", {1}, {3}), tensor<float>("b", {2}, {1, 5})}).elements,
              ElementsAre(3, 6, 15, 30));
  EXPECT_THAT(einsum("ij,ik->i", {2, 2}, {tensor<float>("a", {2, 2}, {1, 1, 2, 2})}).elements, ElementsAre(6, 28));
  EXPECT_THAT(einsum("ij,jk->il", {1, 2}, {tensor<float>("a", {2, 2}, {1, 2, 3, 4})}).error, HasSubstr("equation"));
  EXPECT_THAT(einsum("i1->i", {2, 2}).error, HasSubstr("only letters"));
  EXPECT_THAT(einsum("ijk->i", {2, 2}).error, HasSubstr("does not fit the rank"));
}

TEST(OnnxMicrosoft, FusedElementwiseOperators) {
  EXPECT_THAT(run({"QuickGelu", {1}, {1}, {}, {attr("alpha", 1.0F)}, 17, "com.microsoft"}).elements,
              ElementsAre(FloatNear(0.731059F, 1e-5F)));
  EXPECT_THAT(run({"FusedMatMul",
                   {1, 2},
                   {1, 2},
                   {tensor<float>("a", {1, 2}, {3, 4})},
                   {attr("transB", 1), attr("alpha", 0.5F)},
                   17,
                   "com.microsoft"})
                  .elements,
              ElementsAre(5.5F));
}

}  // namespace
}  // namespace bantam::import
