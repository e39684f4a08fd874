#include "compiler/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/budget.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "ops/elementwise/dequantize/dequantize.h"

namespace bantam::compiler {
namespace {

/// A dequantised value lies there, read by nobody, while a large one is made and reduced.
constexpr std::string_view kLongLife = R"(graph "g" {
  %0 "x" = input : i8[1,1024]
  %1 = const : f32[] splat(0.5)
  %2 "wide" = dequantize(%0, %1)
  %3 = unary(%2) {function="exp"}
  %4 "largest" = concat(%3, %3, %3, %3) {axis=0}
  %5 = reduce(%4) {function="sum", axes=[0], keep_dims=1}
  %6 "y" = binary(%2, %5)
  output "y" %6
})";

TEST(Recompute, CheapValueIsMadeAgainBehindThePeak) {
  const graph::Graph graph = testing::parse(kLongLife);
  const auto again = recompute_values(graph, 2);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->values, 1);
  EXPECT_EQ(again->elements, 1024);
  const auto sound = graph::verify(again->graph);
  ASSERT_TRUE(sound) << sound.error().message;
  EXPECT_EQ(std::ranges::count_if(again->graph.nodes, [](const auto& n) { return n.is(ops::kDequantize); }), 2);
}

TEST(Recompute, ValueThatIsReadAtThePeakStays) { EXPECT_FALSE(recompute_values(testing::parse(kLongLife), 1)); }

TEST(Recompute, BudgetAsksForItAndNothingElseChanges) {
  const graph::Graph graph = testing::parse(kLongLife);
  auto unreduced = plan_model(graph, {});
  ASSERT_TRUE(unreduced) << unreduced.error().message;
  const std::int64_t before = unreduced->activation_bytes;
  const auto reduced = reduce_activations(graph, {}, std::move(*unreduced), before - 2048, {});
  ASSERT_TRUE(reduced) << reduced.error().message;
  EXPECT_LE(reduced->planned.activation_bytes, before - 2048);
  ASSERT_EQ(reduced->reductions.size(), 1U);
  EXPECT_EQ(reduced->reductions[0].before_bytes, before);
  EXPECT_EQ(reduced->reductions[0].after_bytes, reduced->planned.activation_bytes);
  EXPECT_GE(reduced->reductions[0].work_added, 1024);
}

}  // namespace
}  // namespace bantam::compiler
