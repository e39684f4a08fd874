// Quantised operators against numbers worked out by hand: com.microsoft's, blocks and 4-bit numbers, which the
// standard's own node tests do not have. tests/peer compares all of them with ONNX Runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/testing/interpret.h"
#include "import/import.h"
#include "import/testing/onnx_writer.h"
#include "ops/nn/matmul_blocks/matmul_blocks.h"

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
using testing::raw_tensor;
using testing::source_of;
using testing::tensor;

using Ints = std::vector<std::int64_t>;

constexpr const char* kMicrosoft = "com.microsoft";
constexpr std::int32_t kUint4 = 21;
constexpr std::int32_t kInt4 = 22;

/// Output "y" for input "x"; what went wrong otherwise.
template <typename Y, typename X>
std::vector<Y> run(const GraphWriter& writer, const Ints& dims, const std::vector<X>& x, std::int64_t opset = 21) {
  auto graph = import_model(source_of(writer.model(opset)), {});
  if (!graph) {
    ADD_FAILURE() << graph.error().message;
    return {};
  }
  EXPECT_TRUE(graph::verify(*graph));
  auto found = graph::testing::interpret(*graph, {{"x", host_tensor<X>(dims, std::span<const X>(x))}});
  if (!found) {
    ADD_FAILURE() << found.error().message;
    return {};
  }
  const HostTensor& y = found->at("y");
  const auto elements = y.as<Y>();
  return {elements.begin(), elements.end()};
}

std::string refusal_of(const GraphWriter& writer, std::int64_t opset = 21) {
  const auto graph = import_model(source_of(writer.model(opset)), {});
  return graph ? "" : graph.error().message;
}

/// A tensor of 4-bit numbers, two to a byte.
std::string nibbles(std::string_view name, std::int32_t code, const Ints& dims, const std::string& raw) {
  return testing::coded_tensor(name, code, dims, raw);
}

TEST(OnnxQuantized, BlocksOfFourBitNumbersHaveTheirOwnScales) {
  // Column 0 is 1, -1, 7, -8 in blocks of two with scales 0.5 and 2; the first number of a byte lies in its low half.
  GraphWriter g;
  g.input("x", {Dim(std::int64_t{1}), Dim(std::int64_t{4})})
      .initializer(nibbles("w", kInt4, {4, 1}, std::string("\xF1\x87", 2)))
      .initializer(tensor<float>("s", {2, 1}, {0.5F, 2.0F}))
      .node("DequantizeLinear", {"w", "s"}, {"r"}, {attr("axis", 0), attr("block_size", 2)})
      .node("MatMul", {"x", "r"}, {"y"})
      .output("y");
  EXPECT_THAT((run<float, float>(g, {1, 4}, {1, 10, 100, 1000})), ElementsAre(0.5F - 5.0F + 1400.0F - 16000.0F));
}

TEST(OnnxQuantized, UnsignedFourBitNumbersHaveZeroPointsPerBlock) {
  GraphWriter g;
  g.input("x", {Dim(std::int64_t{4})})
      .initializer(nibbles("w", kUint4, {4}, std::string("\xF1\x87", 2)))
      .initializer(tensor<float>("s", {2}, {0.5F, 2.0F}))
      .initializer(nibbles("z", kUint4, {2}, std::string("\x61", 1)))
      .node("DequantizeLinear", {"w", "s", "z"}, {"r"}, {attr("axis", 0), attr("block_size", 2)})
      .node("Add", {"x", "r"}, {"y"})
      .output("y");
  EXPECT_THAT((run<float, float>(g, {4}, {0, 0, 0, 0})), ElementsAre(0.0F, 7.0F, 2.0F, 4.0F));
}

TEST(OnnxQuantized, FourBitResultsAreLimitedToTheirRange) {
  GraphWriter g;
  g.input("x", {Dim(std::int64_t{5})})
      .initializer(tensor<float>("s", {}, {0.5F}))
      .node("QuantizeLinear", {"x", "s"}, {"q"}, {attr("output_dtype", kInt4)})
      .node("DequantizeLinear", {"q", "s"}, {"y"})
      .output("y");
  EXPECT_THAT((run<float, float>(g, {5}, {-100.0F, -4.2F, 0.25F, 0.75F, 9.0F})),
              ElementsAre(-4.0F, -4.0F, 0.0F, 1.0F, 3.5F));
}

TEST(OnnxQuantized, SixteenBitsWork) {
  GraphWriter g;
  g.input("x", {Dim(std::int64_t{3})})
      .initializer(tensor<float>("s", {}, {0.5F}))
      .initializer(tensor<std::uint16_t>("z", {}, {1000}))
      .node("QuantizeLinear", {"x", "s", "z"}, {"q"})
      .node("DequantizeLinear", {"q", "s", "z"}, {"y"})
      .output("y");
  EXPECT_THAT((run<float, float>(g, {3}, {-1000.0F, 3.25F, 40000.0F})), ElementsAre(-500.0F, 3.0F, 32267.5F));
}

TEST(OnnxQuantized, EightBitFloatsAreRefusedByName) {
  GraphWriter g;
  g.input("x", {Dim(std::int64_t{3})})
      .initializer(tensor<float>("s", {}, {0.5F}))
      .node("QuantizeLinear", {"x", "s"}, {"y"}, {attr("output_dtype", 17)})
      .output("y");
  EXPECT_THAT(refusal_of(g), HasSubstr("'output_dtype' = 17 (float8e4m3fn) is not supported"));
}

TEST(OnnxMicrosoft, MatMulNBitsKeepsItsWeightsPacked) {
  // Column 0: 1 - 8, 15 - 8, 9 - 8 times 0.5, K = 3 of a block of 16.
  GraphWriter g;
  std::string block(8, '\0');
  block[0] = '\xF1';
  block[1] = '\x09';
  g.input("x", {Dim(std::int64_t{2}), Dim(std::int64_t{3})})
      .initializer(raw_tensor("w", ElementType::kU8, {1, 1, 8}, block))
      .initializer(tensor<float>("s", {1}, {0.5F}))
      .node("MatMulNBits", {"x", "w", "s"}, {"y"},
            {attr("K", 3), attr("N", 1), attr("bits", 4), attr("block_size", 16)}, "", kMicrosoft)
      .output("y");
  EXPECT_THAT((run<float, float>(g, {2, 3}, {1, 0, 0, 1, 10, 100})), ElementsAre(-3.5F, -3.5F + 35.0F + 50.0F));
  const auto graph = import_model(source_of(g.model(21)), {});
  ASSERT_TRUE(graph);
  EXPECT_TRUE(std::any_of(graph->nodes.begin(), graph->nodes.end(),
                          [](const auto& node) { return node.is(ops::kMatmulBlocks); }));
}

TEST(OnnxMicrosoft, MatMulNBitsRefusesWhatItCannotDo) {
  const auto with = [](const std::vector<std::string>& operands, std::int64_t bits) {
    GraphWriter g;
    g.input("x", {Dim(std::int64_t{1}), Dim(std::int64_t{16})})
        .initializer(raw_tensor("w", ElementType::kU8, {1, 1, 8}, std::string(8, '\0')))
        .initializer(tensor<float>("s", {1}, {0.5F}))
        .initializer(tensor<std::int32_t>("g", {16}, std::vector<std::int32_t>(16, 0)))
        .node("MatMulNBits", operands, {"y"}, {attr("K", 16), attr("N", 1), attr("bits", bits), attr("block_size", 16)},
              "", kMicrosoft)
        .output("y");
    return refusal_of(g);
  };
  EXPECT_EQ(with({"x", "w", "s"}, 4), "");
  EXPECT_THAT(with({"x", "w", "s", "", "g"}, 4), HasSubstr("g_idx"));
  EXPECT_THAT(with({"x", "w", "s"}, 2), HasSubstr("'bits' = 2 is not supported, only 4 and 8"));
  EXPECT_THAT(with({"x", "w", "s"}, 8), HasSubstr("reshape"));
}

TEST(OnnxMicrosoft, QGemmAddsItsBiasOnTheGridOfTheSums) {
  // ((4 - 2) * 3 + (5 - 2) * -1 + 7) * 0.5 * 0.25 / 0.1 = 12.5, to even, plus 3.
  GraphWriter g;
  g.input("x", {Dim(std::int64_t{1}), Dim(std::int64_t{2})}, ElementType::kU8)
      .initializer(tensor<float>("xs", {}, {0.5F}))
      .initializer(tensor<std::uint8_t>("xz", {}, {2}))
      .initializer(tensor<std::int8_t>("w", {2, 1}, {3, -1}))
      .initializer(tensor<float>("ws", {}, {0.25F}))
      .initializer(tensor<std::int8_t>("wz", {}, {0}))
      .initializer(tensor<std::int32_t>("c", {1}, {7}))
      .initializer(tensor<float>("ys", {}, {0.1F}))
      .initializer(tensor<std::uint8_t>("yz", {}, {3}))
      .node("QGemm", {"x", "xs", "xz", "w", "ws", "wz", "c", "ys", "yz"}, {"y"}, {}, "", kMicrosoft)
      .output("y", ElementType::kU8);
  EXPECT_THAT((run<std::uint8_t, std::uint8_t>(g, {1, 2}, {4, 5})), ElementsAre(15));
}

TEST(OnnxMicrosoft, QLinearConcatBringsItsPartsToOneGrid) {
  GraphWriter g;
  g.input("x", {Dim(std::int64_t{2})}, ElementType::kU8)
      .initializer(tensor<float>("s", {}, {1.0F}))
      .initializer(tensor<std::uint8_t>("z", {}, {10}))
      .initializer(tensor<float>("t", {}, {0.5F}))
      .initializer(tensor<std::uint8_t>("u", {}, {0}))
      .node("QLinearConcat", {"s", "z", "x", "s", "z", "x", "t", "u"}, {"y"}, {attr("axis", 0)}, "", kMicrosoft)
      .output("y", ElementType::kU8);
  EXPECT_THAT((run<std::uint8_t, std::uint8_t>(g, {2}, {3, 200})), ElementsAre(3, 200, 12, 110));
}

TEST(OnnxMicrosoft, DynamicQuantizeMatMulQuantisesByTheRangeOfItsOperand) {
  // x in [-1, 1.55]: scale 0.01, zero point 100; the numbers are exact.
  GraphWriter g;
  g.input("x", {Dim(std::int64_t{1}), Dim(std::int64_t{2})})
      .initializer(tensor<std::int8_t>("w", {2, 1}, {10, 20}))
      .initializer(tensor<float>("s", {1}, {0.5F}))
      .initializer(tensor<std::int8_t>("z", {1}, {4}))
      .initializer(tensor<float>("b", {1}, {3.0F}))
      .node("DynamicQuantizeMatMul", {"x", "w", "s", "z", "b"}, {"y"}, {}, "", kMicrosoft)
      .output("y");
  EXPECT_THAT((run<float, float>(g, {1, 2}, {-1.0F, 1.55F})),
              ElementsAre(FloatNear(-1.0F * 3.0F + 1.55F * 8.0F + 3.0F, 1e-5F)));
}

}  // namespace
}  // namespace bantam::import
