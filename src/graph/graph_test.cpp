#include "graph/graph.h"

#include <gtest/gtest.h>

#include "graph/text.h"

namespace bantam::graph {
namespace {

Graph parse(std::string_view text) {
  auto graph = from_text(text);
  EXPECT_TRUE(graph) << graph.error().message;
  return std::move(*graph);
}

Graph chain() {
  return parse(R"(graph "g" {
    %0 "x" = input : f32[2]
    %1 "h" = state : f32[2]
    %2 = unary(%0) {function="exp"}
    %3 = binary(%2, %2) {function="add"}
    %4 = binary(%3, %1) {function="add"}
    output "y" %4
    next "h" %4
  })");
}

TEST(Uses, ListsEveryOperandAndWhatPortsRead) {
  const Graph g = chain();
  const Uses uses(g);
  const ValueId exp = g.nodes[0].outputs[0];
  ASSERT_EQ(uses.of(exp).size(), 2u);
  EXPECT_EQ(uses.of(exp)[1].node, 1);
  EXPECT_EQ(uses.of(exp)[1].operand, 1);
  EXPECT_FALSE(uses.only(exp));
  ASSERT_TRUE(uses.only(g.nodes[1].outputs[0]));
  EXPECT_EQ(uses.only(g.nodes[1].outputs[0])->node, 2);
  EXPECT_TRUE(uses.is_external(g.nodes[2].outputs[0]));
  EXPECT_FALSE(uses.only(g.nodes[2].outputs[0]));
}

TEST(ReplaceUses, RedirectsNodesPortsAndStates) {
  Graph g = chain();
  const ValueId sum = g.nodes[1].outputs[0];
  replace_uses(g, g.nodes[2].outputs[0], sum);
  EXPECT_EQ(g.outputs[0].value, sum);
  EXPECT_EQ(g.states[0].out, sum);
  replace_uses(g, g.nodes[0].outputs[0], g.inputs[0].value);
  EXPECT_EQ(g.nodes[1].inputs, (std::vector<ValueId>{g.inputs[0].value, g.inputs[0].value}));
}

TEST(Compact, DropsRemovedNodesAndUnreadValuesOnly) {
  Graph g = chain();
  replace_uses(g, g.nodes[0].outputs[0], g.inputs[0].value);
  g.nodes[0].op = nullptr;
  compact(g);
  ASSERT_TRUE(verify(g));
  EXPECT_EQ(g.nodes.size(), 2u);
  EXPECT_EQ(g.values.size(), 4u);
  EXPECT_EQ(g.value(g.outputs[0].value).producer, 1);
}

TEST(SortTopologically, RestoresTheOrderAndKeepsIndependentNodesInPlace) {
  Graph g = chain();
  const std::string before = to_text(g);
  std::swap(g.nodes[0], g.nodes[2]);
  ASSERT_TRUE(sort_topologically(g));
  ASSERT_TRUE(verify(g));
  EXPECT_EQ(to_text(g), before);
}

TEST(SortTopologically, NamesANodeOfACycle) {
  Graph g = chain();
  g.nodes[0].inputs[0] = g.nodes[1].outputs[0];
  const auto sorted = sort_topologically(g);
  ASSERT_FALSE(sorted);
  EXPECT_NE(sorted.error().message.find("cycle"), std::string::npos);
}

TEST(ConstantElements, ConvertByValueAndRefuseOtherTypes) {
  const Graph g = parse(R"(graph "g" {
    %0 = const : i8[2] {-1, 3}
    %1 = const : f32[2] {0.5, 2}
    %2 = const : u32[1] {4294967295}
    output "a" %0
    output "b" %1
    output "c" %2
  })");
  const ValueId bytes = g.outputs[0].value;
  const ValueId floats = g.outputs[1].value;
  EXPECT_EQ(constant_integers(g, bytes), (std::vector<std::int64_t>{-1, 3}));
  EXPECT_EQ(constant_integers(g, g.outputs[2].value), (std::vector<std::int64_t>{4294967295}));
  EXPECT_FALSE(constant_integers(g, floats));
  EXPECT_EQ(constant_floats(g, floats), (std::vector<float>{0.5F, 2.0F}));
  EXPECT_FALSE(constant_floats(g, bytes));
  EXPECT_FALSE(constant_integers(g, kNone));
}

TEST(OperandTables, AlignSmallConstantsThatLieUnaligned) {
  Graph g = chain();
  auto memory = std::make_shared<std::vector<std::byte>>(9);
  Value v;
  v.desc = g.value(g.inputs[0].value).desc;
  v.constant = Constant{std::span<const std::byte>(*memory).subspan(1), memory};
  g.nodes[0].inputs[0] = g.add_value(std::move(v));
  const OperandTables tables = operand_tables(g, g.nodes[0]);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tables.inputs[0].data) % alignof(float), 0u);
  EXPECT_EQ(operand_tables(g, g.nodes[2]).inputs[0].data, nullptr);
}

TEST(FormatDesc, ListsTypeAndDims) {
  TensorDesc d;
  d.type = ElementType::kF32;
  EXPECT_EQ(format_desc(d), "f32[]");
  d.rank = 2;
  d.dims[0] = 1;
  d.dims[1] = 320;
  EXPECT_EQ(format_desc(d), "f32[1,320]");
}

}  // namespace
}  // namespace bantam::graph
