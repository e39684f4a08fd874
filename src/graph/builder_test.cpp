#include "graph/builder.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "ops/data/expand/expand.h"
#include "ops/data/gather/gather.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/unary/unary.h"

namespace bantam::graph {
namespace {

TensorDesc f32(std::initializer_list<std::int32_t> dims) {
  TensorDesc d;
  d.type = ElementType::kF32;
  for (const std::int32_t n : dims) d.dims[d.rank++] = n;
  d.set_dense_strides();
  return d;
}

TEST(Builder, EmitsInferredNodesWithTheirSource) {
  Graph graph;
  Builder builder(graph);
  builder.set_source("first", "Add");
  const ValueId x = builder.input("x", f32({2, 3}));
  const auto y = builder.emit1(ops::kBinary, ops::BinaryParams{}, {x, builder.scalar(1.0F)}, "sum");
  ASSERT_TRUE(y) << y.error().message;
  builder.output("y", *y);
  ASSERT_TRUE(verify(graph));
  EXPECT_EQ(format_desc(builder.desc(*y)), "f32[2,3]");
  EXPECT_EQ(graph.value(*y).name, "sum");
  EXPECT_EQ(graph.nodes[0].name, "first");
  EXPECT_EQ(graph.nodes[0].origin, "Add");
}

TEST(Builder, FoldsChainsOfConstants) {
  Graph graph;
  Builder builder(graph);
  const std::int64_t dims[] = {4, 5, 6};
  const std::int64_t pick[] = {2, 0};
  const ValueId shape = builder.integers(dims);
  const auto gathered = builder.emit1(ops::kGather, ops::GatherParams{0, 0}, {shape, builder.integers(pick)});
  ASSERT_TRUE(gathered);
  const auto doubled = builder.emit1(ops::kBinary, ops::BinaryParams{}, {*gathered, *gathered});
  ASSERT_TRUE(doubled);
  EXPECT_TRUE(graph.nodes.empty());
  EXPECT_EQ(constant_integers(graph, *doubled), (std::vector<std::int64_t>{12, 8}));
}

TEST(Builder, LeavesHugeResultsToTheRuntime) {
  Graph graph;
  Builder builder(graph);
  const auto x = builder.emit1(ops::kExpand, ops::ExpandParams{{2, {1 << 13, 1 << 12}}}, {builder.scalar(1.0F)});
  ASSERT_TRUE(x) << x.error().message;
  EXPECT_FALSE(graph.is_constant(*x));
  EXPECT_EQ(graph.nodes.size(), 1u);
}

TEST(Builder, ReturnsTheOperandWhenNothingChanges) {
  Graph graph;
  Builder builder(graph);
  const ValueId x = builder.input("x", f32({2, 3}));
  const int same[] = {0, 1};
  const std::int64_t dims[] = {2, 3};
  EXPECT_EQ(builder.transpose(x, same).value(), x);
  EXPECT_EQ(builder.reshape(x, dims).value(), x);
  EXPECT_EQ(builder.cast(x, ElementType::kF32).value(), x);
  EXPECT_TRUE(graph.nodes.empty());
}

TEST(Builder, ErrorsNameNodeOperatorAndShapes) {
  Graph graph;
  Builder builder(graph);
  builder.set_source("bad_sum", "Add");
  const ValueId a = builder.input("a", f32({2}));
  const ValueId b = builder.input("b", f32({3}));
  const auto y = builder.emit1(ops::kBinary, ops::BinaryParams{}, {a, b});
  ASSERT_FALSE(y);
  for (const char* part : {"bad_sum", "Add", "binary", "f32[2]", "f32[3]"})
    EXPECT_NE(y.error().message.find(part), std::string::npos) << part << " in " << y.error().message;
  EXPECT_TRUE(graph.nodes.empty());
  const std::int64_t six[] = {6};
  EXPECT_FALSE(builder.reshape(a, six));
  const int wrong[] = {0, 1};
  EXPECT_FALSE(builder.transpose(a, wrong));
}

TEST(Builder, AFaultWhileFoldingIsAnErrorThatNamesTheNode) {
  Graph graph;
  Builder builder(graph);
  builder.set_source("lookup", "Gather");
  const std::int64_t elements[] = {1, 2};
  const std::int64_t beyond[] = {7};
  const auto y =
      builder.emit1(ops::kGather, ops::GatherParams{0, 0}, {builder.integers(elements), builder.integers(beyond)});
  ASSERT_FALSE(y);
  EXPECT_NE(y.error().message.find("lookup"), std::string::npos);
}

TEST(Builder, OperandsWithoutElementsHaveAPlaceWhileFolding) {
  static constexpr ops::KernelVariant kVariants[] = {{
      .name = "f32__ref",
      .run =
          [](const ops::Invocation& call) {
            return call.inputs[0].data != nullptr ? ok_status() : failure(StatusCode::kInvalidArgument, "no place");
          },
  }};
  static constexpr ops::OpDef kLooksAtItsOperand{
      .name = "looks_at_its_operand", .min_inputs = 1, .max_inputs = 1, .variants = kVariants};
  const TensorDesc none = f32({3, 0});
  const Tensor operand{nullptr, &none};
  const auto result = evaluate(kLooksAtItsOperand, {}, std::span(&operand, 1), std::span(&none, 1));
  EXPECT_TRUE(result) << result.error().message;
}

TEST(Builder, ConstantsAreCopiedOrSharedAsAsked) {
  Graph graph;
  Builder builder(graph);
  auto owner = std::make_shared<std::vector<std::byte>>(8);
  const ValueId shared = builder.constant("w", f32({2}), *owner, owner);
  EXPECT_EQ(graph.value(shared).constant->bytes.data(), owner->data());
  float number = 3.0F;
  const ValueId copied = builder.scalar(number);
  number = 4.0F;
  EXPECT_EQ(constant_floats(graph, copied), std::vector<float>{3.0F});
}

TEST(Builder, StatesStartAsGiven) {
  Graph graph;
  Builder builder(graph);
  const ValueId h = builder.state("h", f32({2}));
  const auto next = builder.emit1(ops::kUnary, ops::UnaryParams{ops::UnaryFunction::kNeg}, {h});
  ASSERT_TRUE(next);
  graph.states[0].out = *next;
  EXPECT_TRUE(verify(graph));
  EXPECT_FALSE(graph.states[0].initial);
}

}  // namespace
}  // namespace bantam::graph
