#include "compiler/cached_bands.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"

namespace bantam::compiler {
namespace {

using graph::Graph;

/// A machine whose caches hold so many bytes.
PlanOptions with_caches(double bytes) {
  PlanOptions options;
  const auto target = find_target("x86-64-avx2");
  EXPECT_TRUE(target);
  if (target) options.target = *target;
  options.target.machine.cache_bytes = bytes;
  return options;
}

constexpr double kSmallCaches = 128 << 10;
constexpr std::int64_t kLargeValue = std::int64_t{64} * 64 * 16 * 4;

/// A large value that a pooling makes small, and what else there is.
Graph graph_with_large_value(const std::string& more = "") {
  return testing::parse(fmt::format(R"(graph "g" {{
    %0 "x" = input : f32[1,64,64,3]
    %1 = const : f32[16,3,3,3] splat(0.125)
    %2 = const : f32[8,3,3,16] splat(0.25)
    %3 "large" = conv2d(%0, %1) {{pad_top=1, pad_bottom=1, pad_left=1, pad_right=1, activation="relu"}}
    %4 "pooled" = pool2d(%3) {{kernel_h=2, kernel_w=2, stride_h=2, stride_w=2}}
    %5 = conv2d(%4, %2) {{pad_top=1, pad_bottom=1, pad_left=1, pad_right=1}}
    {}
    output "y" %5
  }})",
                                    more));
}

std::optional<ReducedModel> in_bands(const Graph& graph, const PlanOptions& options) {
  const auto whole = plan_model(graph, options);
  EXPECT_TRUE(whole);
  if (!whole) return std::nullopt;
  auto banded = plan_in_bands(graph, options, *whole);
  EXPECT_TRUE(banded) << banded.error().message;
  return banded ? std::move(*banded) : std::nullopt;
}

TEST(CachedBands, ValueLargerThanTheCachesIsComputedAFewRowsAtATime) {
  const Graph graph = graph_with_large_value();
  const auto banded = in_bands(graph, with_caches(kSmallCaches));
  ASSERT_TRUE(banded);
  ASSERT_EQ(banded->reductions.size(), 1U);
  const ReductionReport& stage = banded->reductions.front();
  EXPECT_EQ(stage.bytes_spared, 2 * kLargeValue) << "written and fetched once";
  EXPECT_EQ(stage.work_added, 0);
  EXPECT_GT(stage.before_bytes, kLargeValue);
  EXPECT_LT(stage.after_bytes, kLargeValue);
  EXPECT_EQ(stage.after_bytes, banded->planned.activation_bytes);

  const auto before = testing::compile_graph(graph);
  const auto after = testing::compile_graph(banded->planned.graph);
  ASSERT_TRUE(before && after);
  auto placed = testing::place_package(before->package.bytes());
  auto placed_after = testing::place_package(after->package.bytes());
  ASSERT_TRUE(placed && placed_after);
  const auto expected = testing::run(*placed->fleet->session(0), 1);
  const auto actual = testing::run(*placed_after->fleet->session(0), 1);
  ASSERT_EQ(actual.size(), expected.size());
  testing::expect_close(expected.front(), actual.front(), ElementType::kF32);
}

TEST(CachedBands, ValuesThatTheCachesHoldStayWhole) {
  EXPECT_FALSE(in_bands(graph_with_large_value(), with_caches(kLargeValue)));
  EXPECT_FALSE(in_bands(graph_with_large_value(), with_caches(0))) << "a target without caches";
}

TEST(CachedBands, ValueThatTheApplicationReadsIsWrittenAnyway) {
  EXPECT_FALSE(in_bands(graph_with_large_value("output \"z\" %3"), with_caches(kSmallCaches)));
}

TEST(CachedBands, WeightsThatEveryBandFetchesAgainCostMoreThanAValueFetchedOnce) {
  PlanOptions options = with_caches(kSmallCaches);
  options.target.machine.weight_bytes = 1e-4;
  EXPECT_FALSE(in_bands(graph_with_large_value(), options));
}

TEST(CachedBands, MemoryThatIsAsFastAsTheCachesIsNotSpared) {
  PlanOptions options = with_caches(kSmallCaches);
  options.target.machine.fetched_bytes = 1e9;
  EXPECT_FALSE(in_bands(graph_with_large_value(), options));
}

TEST(CachedBands, NodesThatRulesMayNameStayWhole) {
  PlanOptions options = with_caches(kSmallCaches);
  options.backend = Backend::kReference;
  EXPECT_FALSE(in_bands(graph_with_large_value(), options));
  options.backend = Backend::kFast;
  options.backends = {{"*", Backend::kReference}};
  EXPECT_FALSE(in_bands(graph_with_large_value(), options));
}

/// Besides a large value, a convolution of many weights that Winograd's method reads once per block of tiles.
Graph graph_with_many_weights() {
  return testing::parse(R"(graph "g" {
    %0 "x" = input : f32[1,128,128,3]
    %1 = const : f32[32,3,3,3] splat(0.125)
    %2 = const : f32[256,3,3,32] splat(0.1)
    %3 = const : f32[256,3,3,256] splat(0.1)
    %4 "large" = conv2d(%0, %1) {pad_top=1, pad_bottom=1, pad_left=1, pad_right=1, activation="relu"}
    %5 "pooled" = pool2d(%4) {kernel_h=4, kernel_w=4, stride_h=4, stride_w=4}
    %6 = conv2d(%5, %2) {stride_h=2, stride_w=2, pad_top=1, pad_bottom=1, pad_left=1, pad_right=1}
    %7 "y" = conv2d(%6, %3) {pad_top=1, pad_bottom=1, pad_left=1, pad_right=1}
    output "y" %7
  })");
}

std::int64_t largest_scratch(const PlannedModel& planned) {
  std::int64_t bytes = 0;
  for (const PlannedStep& step : planned.steps) bytes = std::max(bytes, step.scratch_bytes);
  return bytes;
}

TEST(CachedBands, ScratchOfOtherStepsGetsWhatBandsSaveWhereItIsWorthMore) {
  const Graph graph = graph_with_many_weights();
  PlanOptions options = with_caches(4 * kSmallCaches);
  const auto whole = plan_model(graph, options);
  ASSERT_TRUE(whole);
  options.target.machine.fetched_bytes = 0.5;
  const auto small = in_bands(graph, options);
  ASSERT_TRUE(small);
  EXPECT_LT(small->planned.activation_bytes, whole->activation_bytes);
  EXPECT_LT(largest_scratch(small->planned), largest_scratch(*whole));

  options.target.machine.fetched_bytes = 16;
  const auto roomy = in_bands(graph, options);
  ASSERT_TRUE(roomy);
  EXPECT_LE(roomy->planned.activation_bytes, whole->activation_bytes);
  EXPECT_GE(largest_scratch(roomy->planned), largest_scratch(*whole));
  EXPECT_EQ(roomy->planned.activation_bytes - roomy->planned.added_scratch_bytes, small->planned.activation_bytes);
  EXPECT_EQ(roomy->reductions.front().after_bytes, roomy->planned.activation_bytes);

  const auto bounded = plan_in_bands(graph, options, *whole, small->planned.activation_bytes);
  ASSERT_TRUE(bounded);
  EXPECT_FALSE(*bounded) << "no room for the scratch";
}

TEST(CachedBands, StagesEndWhereValuesFitTheCachesAgain) {
  const Graph graph = testing::parse(R"(graph "g" {
    %0 "x" = input : f32[1,64,64,3]
    %1 = const : f32[16,3,3,3] splat(0.125)
    %2 = const : f32[32,1,1,16] splat(0.25)
    %3 = const : f32[4,1,1,32] splat(0.25)
    %4 = conv2d(%0, %1) {stride_h=2, stride_w=2, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
    %5 = conv2d(%4, %2) {activation="relu"}
    %6 = conv2d(%5, %3)
    %8 = const : f32[64,1,1,4] splat(0.5)
    %7 = conv2d(%6, %8)
    %9 = unary(%7) {function="tanh"}
    %11 = const : f32[2,1,1,64] splat(0.5)
    %10 = conv2d(%9, %11)
    output "y" %10
  })");
  const auto banded = in_bands(graph, with_caches(100 << 10));
  ASSERT_TRUE(banded);
  EXPECT_EQ(banded->reductions.size(), 2U);
}

}  // namespace
}  // namespace bantam::compiler
