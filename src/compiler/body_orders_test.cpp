#include "compiler/body_orders.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/order.h"
#include "compiler/testing/compile_text.h"
#include "graph/text.h"

namespace bantam::compiler {
namespace {

/// Two values of 100 and 50 rows, of which 1 and 40 stay. The smaller first, as an order by growth has it, or both at
/// once, as the model has it, need 140 and 150 rows, the larger first 101.
constexpr const char* kBody = R"(
    %x = input : f32[1,64]
    %large = expand(%x) {shape=[100, 64]}
    %small = expand(%x) {shape=[50, 64]}
    %one = reduce(%large) {axes=[0]}
    %forty = pad(%small) {before=[-10, 0], after=[0, 0]}
    %sum = reduce(%forty) {axes=[0]}
    %r = binary(%one, %sum)
)";
constexpr std::int64_t kRow = 64 * 4;

std::string in_branch() {
  return std::string(R"(graph "branch" {
  %c "c" = input : bool[]
  %x "x" = input : f32[1,64]
  %r = if(%c, %x) : f32[1,64]
    body "then" {)") +
         kBody + R"(
      output "r" %r
    }
    body "else" {
      %x = input : f32[1,64]
      %r = unary(%x) {function="exp"}
      output "r" %r
    }
  output "y" %r
})";
}

TEST(BodyOrders, OfABranchAreSearched) {
  const graph::Graph graph = testing::parse(in_branch());
  const auto found = search_inner_orders(graph, {}, {});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->order, (std::vector<graph::NodeId>{0}));
  ASSERT_EQ(found->bodies.size(), 2U);
  EXPECT_EQ(found->bodies[1], (std::vector<graph::NodeId>{0}));
  graph::Graph reordered = graph;
  reorder_bodies(reordered, found->bodies);
  const std::vector<graph::NodeId>& order = found->bodies[0];
  const auto at = [&](graph::NodeId n) { return std::ranges::find(order, n) - order.begin(); };
  EXPECT_LT(at(2), at(1)) << "the large value is not reduced before the small one is made";
  const auto compiled = testing::compile_text(in_branch());
  ASSERT_TRUE(compiled) << compiled.error().message;
  EXPECT_LT(compiled->planned.activation_bytes, 110 * kRow) << compiled->planned.method;
  const auto& trials = compiled->planned.trials;
  EXPECT_TRUE(std::ranges::any_of(
      trials, [](const PlanTrial& t) { return t.name == "model order" && t.activation_bytes >= 150 * kRow; }));
}

TEST(BodyOrders, OfTheStepsAroundTakeABodyAsOneStep) {
  // The branch needs 101 rows: the forty rows that nobody needs before it had better be made after it.
  const graph::Graph graph = testing::parse(std::string(R"(graph "around" {
  %c "c" = input : bool[]
  %x "x" = input : f32[1,64]
  %e = expand(%x) {shape=[40, 64]}
  %f = unary(%e) {function="exp"}
  %r = if(%c, %x) : f32[1,64]
    body "then" {)") + kBody + R"(
      output "r" %r
    }
    body "else" {)" + kBody + R"(
      output "r" %r
    }
  %s = reduce(%f) {axes=[0]}
  %y = binary(%r, %s)
  output "y" %y
})");
  const auto found = search_inner_orders(graph, {}, {});
  ASSERT_TRUE(found) << found.error().message;
  const auto at = [&](graph::NodeId n) { return std::ranges::find(found->order, n) - found->order.begin(); };
  EXPECT_TRUE(at(2) < at(0) || at(3) < at(2)) << "the forty rows lie there while the branch runs";
  const auto compiled = testing::compile_graph(graph);
  ASSERT_TRUE(compiled) << compiled.error().message;
  EXPECT_LT(compiled->planned.activation_bytes, 110 * kRow) << compiled->planned.method;
}

TEST(BodyOrders, OfBodiesInsideBodiesComeInTheOrderInWhichTheyWereFound) {
  const graph::Graph graph = testing::parse(std::string(R"(graph "nested" {
  %n "n" = input : i64[]
  %c "c" = input : bool[]
  %x "x" = input : f32[1,64]
  %y = loop(%n, _, %x, %c) {limit=3} : f32[1,64]
    body "body" {
      %i = input : i64[]
      %v = input : f32[1,64]
      %c = input : bool[]
      %go = const : bool[] {1}
      %b = unary(%v) {function="exp"}
      %w = if(%c, %b) : f32[1,64]
        body "then" {)") + kBody + R"(
          output "r" %r
        }
        body "else" {
          %0 = input : f32[1,64]
          %1 = unary(%0) {function="neg"}
          output "r" %1
        }
      %m = binary(%w, %v)
      output "go" %go
      output "v" %m
    }
  output "y" %y
})");
  const auto found = search_inner_orders(graph, {}, {});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->bodies.size(), 3U);
  EXPECT_EQ(found->bodies[0].size(), 3U);
  EXPECT_EQ(found->bodies[1].size(), 6U);
  EXPECT_EQ(found->bodies[2].size(), 1U);
  graph::Graph reordered = graph;
  reorder_bodies(reordered, found->bodies);
  EXPECT_EQ(reordered.nodes[0].bodies[0].nodes[1].bodies[0].nodes.size(), 6U);
  const auto compiled = testing::compile_graph(graph);
  ASSERT_TRUE(compiled) << compiled.error().message;
  EXPECT_LT(compiled->planned.activation_bytes, 115 * kRow) << compiled->planned.method;
}

}  // namespace
}  // namespace bantam::compiler
