#include "compiler/fuse_separable.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/budget.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "ops/nn/separable_conv2d/separable_conv2d.h"

namespace bantam::compiler {
namespace {

using graph::Graph;

/// A depthwise convolution, what reads it, and what else there is.
Graph graph_with_pair(const std::string& pointwise, const std::string& more = "",
                      const std::string& weights = "f32[8,1,1,16]") {
  return testing::parse(fmt::format(R"(graph "g" {{
    %0 "x" = input : f32[1,24,24,16]
    %1 = const : f32[3,3,16] splat(0.25)
    %2 = const : {} splat(0.125)
    %3 "filtered" = depthwise_conv2d(%0, %1) {{pad_top=1, pad_bottom=1, pad_left=1, pad_right=1, activation="relu"}}
    %4 "mixed" = {}
    {}
    output "y" %4
  }})",
                                    weights, pointwise, more));
}

std::size_t pair_count(const Graph& graph, const KernelPolicy& policy = {}) {
  const auto pairs = separable_pairs(graph, policy);
  EXPECT_TRUE(pairs);
  return pairs ? pairs->size() : 0;
}

TEST(FuseSeparable, JoinsADepthwiseConvolutionWithThePointwiseOneThatAloneReadsIt) {
  Graph graph = graph_with_pair("conv2d(%3, %2) {activation=\"relu\"}");
  graph.node(0).name = "filter";
  graph.node(1).name = "mix";
  const auto pairs = separable_pairs(graph, {});
  ASSERT_TRUE(pairs);
  ASSERT_EQ(pairs->size(), 1U);
  Graph fused = graph;
  fuse_pairs(fused, *pairs);
  ASSERT_TRUE(graph::verify(fused));
  ASSERT_EQ(fused.nodes.size(), 1U);
  EXPECT_TRUE(fused.node(0).is(ops::kSeparableConv2d));
  EXPECT_EQ(fused.node(0).name, "filter+mix");
  EXPECT_EQ(fused.value(fused.node(0).outputs[0]).name, "mixed");

  const auto before = testing::compile_graph(graph);
  const auto after = testing::compile_graph(fused);
  ASSERT_TRUE(before && after);
  const std::int64_t value = 24 * 24 * 16 * 4;
  EXPECT_GE(before->planned.activation_bytes, 2 * value);
  EXPECT_LE(after->planned.activation_bytes, value + value / 2 + 24 * 16 * 4) << "a row between the two";
  auto placed = testing::place_package(before->package.bytes());
  auto placed_after = testing::place_package(after->package.bytes());
  ASSERT_TRUE(placed && placed_after);
  EXPECT_EQ(testing::run(*placed->fleet->session(0), 1), testing::run(*placed_after->fleet->session(0), 1));
}

TEST(FuseSeparable, IsWhatABudgetTriesFirst) {
  const Graph graph = graph_with_pair("conv2d(%3, %2)");
  auto planned = plan_model(graph, {});
  ASSERT_TRUE(planned);
  const std::int64_t target = planned->activation_bytes - 1;
  const auto reduced = reduce_activations(graph, {}, std::move(*planned), target, {});
  ASSERT_TRUE(reduced);
  EXPECT_LE(reduced->planned.activation_bytes, target);
  ASSERT_EQ(reduced->reductions.size(), 1U);
  const ReductionReport& reduction = reduced->reductions.front();
  EXPECT_TRUE(reduction.what.starts_with("1 depthwise convolution computed with the pointwise one")) << reduction.what;
  EXPECT_EQ(reduction.after_bytes, reduced->planned.activation_bytes);
  EXPECT_EQ(reduction.work_added, 0);
  EXPECT_EQ(reduction.bytes_copied, 0);
}

TEST(FuseSeparable, LeavesWhatIsNoSuchPair) {
  EXPECT_EQ(pair_count(graph_with_pair("conv2d(%3, %2)")), 1U);
  EXPECT_EQ(pair_count(graph_with_pair("conv2d(%3, %2) {stride_h=2}")), 0U) << "not pixel by pixel";
  EXPECT_EQ(pair_count(graph_with_pair("conv2d(%3, %2) {pad_top=1}")), 0U) << "pixels of padding";
  EXPECT_EQ(pair_count(graph_with_pair("conv2d(%3, %2)", "", "f32[8,1,2,16]")), 0U) << "two pixels for one";
  EXPECT_EQ(pair_count(graph_with_pair("conv2d(%3, %2) {groups=2}", "", "f32[8,1,1,8]")), 0U);
  EXPECT_EQ(pair_count(graph_with_pair("conv2d(%3, %2)", "output \"z\" %3")), 0U)
      << "somebody else wants the first result";
  EXPECT_EQ(pair_count(graph_with_pair("conv2d(%0, %2)", "output \"z\" %3")), 0U) << "does not read it";
}

TEST(FuseSeparable, JoinsOnlyKernelsOfOneKind) {
  const Graph graph = graph_with_pair("conv2d(%3, %2)");
  EXPECT_EQ(pair_count(graph, {.backend = Backend::kReference}), 1U);
  EXPECT_EQ(pair_count(graph, {.rules = {{"*", Backend::kReference}}}), 0U) << "patterns name nodes";
  // Sixteen-bit depthwise convolutions have the plain kernel only, pointwise ones a fast one.
  const Graph mixed = testing::parse(R"(graph "g" {
    %0 "x" = input : i16[1,8,8,4]
    %1 = const : i8[3,3,4] splat(3)
    %2 = const : i8[4,1,1,4] splat(5)
    %3 = const : i32[4] splat(1073741824)
    %4 = const : i32[4] splat(-3)
    %5 = depthwise_conv2d(%0, %1, _, %3, %4) {minimum=-32768, maximum=32767}
    %6 = conv2d(%5, %2, _, %3, %4) {minimum=-32768, maximum=32767}
    output "y" %6
  })");
  EXPECT_EQ(pair_count(mixed), 0U);
}

}  // namespace
}  // namespace bantam::compiler
