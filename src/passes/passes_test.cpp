#include "passes/passes.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/text.h"
#include "passes/testing/text_to_text.h"

namespace bantam::passes {
namespace {

constexpr const char* kModel = R"(graph "g" {
  %0 "x" = input : f32[1,2]
  %1 = const : f32[2,2] {1, 2, 3, 4}
  %2 = matmul(%0, %1)
  %3 = unary(%2) {function="identity"}
  %4 = unary(%3) {function="relu"}
  output "y" %4
})";

TEST(RunPasses, StopsAfterTheNamedPass) {
  graph::Graph graph = testing::parse(kModel);
  ASSERT_TRUE(run_passes(graph, {.stop_after = "remove-identities", .verify = true}));
  EXPECT_EQ(graph.nodes.size(), 2u);
  ASSERT_TRUE(run_passes(graph, {.stop_after = "", .verify = true}));
  EXPECT_EQ(graph.nodes.size(), 1u);
}

TEST(RunPasses, ListsTheNamesWhenOneIsUnknown) {
  graph::Graph graph = testing::parse(kModel);
  const auto done = run_passes(graph, {.stop_after = "make-it-fast", .verify = false});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("make-it-fast"), std::string::npos);
  EXPECT_NE(done.error().remedy.find("remove-identities"), std::string::npos);
}

TEST(RunPasses, NamesAreUniqueAndDescribed) {
  std::set<std::string_view> names;
  for (const Pass& pass : all_passes()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_FALSE(pass.summary.empty()) << pass.name;
  }
}

TEST(RunPasses, ASecondRunChangesNothing) {
  graph::Graph graph = testing::parse(R"(graph "g" {
    %0 "x" = input : f32[1,2,4,4]
    %1 = transpose(%0) {perm=[0, 2, 3, 1]}
    %2 = const : f32[3,1,1,2] splat(1)
    %3 = conv2d(%1, %2)
    %4 = transpose(%3) {perm=[0, 3, 1, 2]}
    %5 = const : f32[1,3,1,1] {1, 2, 3}
    %6 = binary(%4, %5) {function="add"}
    %7 = unary(%6) {function="relu"}
    %8 = reduce(%7) {function="mean", axes=[2, 3], keep_dims=false}
    output "y" %8
  })");
  ASSERT_TRUE(run_passes(graph, {.stop_after = "", .verify = true}));
  const std::string once = graph::to_text(graph);
  EXPECT_EQ(once.find("transpose("), once.rfind("transpose("));
  ASSERT_TRUE(run_passes(graph, {.stop_after = "", .verify = true}));
  EXPECT_EQ(graph::to_text(graph), once);
}

TEST(RunPasses, AnEmptyGraphAndPortsWithoutNodesAreFine) {
  graph::Graph empty;
  EXPECT_TRUE(run_passes(empty, {.stop_after = "", .verify = true}));
  graph::Graph wire = testing::parse(R"(graph "g" {
    %0 "x" = input : f32[2]
    %1 "h" = state : f32[2]
    output "y" %0
    next "h" %1
  })");
  EXPECT_TRUE(run_passes(wire, {.stop_after = "", .verify = true}));
}

}  // namespace
}  // namespace bantam::passes
