#include "plan/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace bantam::plan {
namespace {

using Random = std::mt19937_64;

int pick(Random& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
}

/// Steps that read results of earlier ones; some write where they read, some write parts of one buffer.
OrderProblem random_graph(std::uint64_t seed, int steps) {
  Random random(seed);
  OrderProblem problem;
  problem.buffers.push_back({pick(random, 1, 20), true, pick(random, 0, 3) == 0});
  std::vector<std::int32_t> made_by = {-1};
  for (std::int32_t s = 0; s < steps; ++s) {
    OrderStep step;
    for (int reads = pick(random, 1, 2); reads > 0; --reads) {
      const std::int32_t b =
          pick(random, std::max(0, static_cast<int>(made_by.size()) - 5), static_cast<int>(made_by.size()) - 1);
      step.reads.push_back(b);
      if (made_by[static_cast<std::size_t>(b)] >= 0) step.after.push_back(made_by[static_cast<std::size_t>(b)]);
    }
    const auto written = static_cast<std::int32_t>(problem.buffers.size());
    problem.buffers.push_back({pick(random, 0, 20), false, pick(random, 0, 5) == 0});
    made_by.push_back(s);
    step.writes.push_back(written);
    if (pick(random, 0, 2) == 0) step.overwrites.push_back({written, step.reads[0]});
    if (pick(random, 0, 3) == 0) step.scratch = pick(random, 1, 10);
    problem.steps.push_back(step);
  }
  return problem;
}

bool is_order(const OrderProblem& problem, const std::vector<std::int32_t>& order) {
  std::vector<bool> done(problem.steps.size(), false);
  for (const std::int32_t s : order) {
    for (const std::int32_t p : problem.steps[static_cast<std::size_t>(s)].after)
      if (!done[static_cast<std::size_t>(p)]) return false;
    if (done[static_cast<std::size_t>(s)]) return false;
    done[static_cast<std::size_t>(s)] = true;
  }
  return order.size() == problem.steps.size();
}

std::int64_t best_by_trying_all(const OrderProblem& problem) {
  std::vector<std::int32_t> order(problem.steps.size());
  std::iota(order.begin(), order.end(), 0);
  std::int64_t best = peak_of_order(problem, order);
  while (std::next_permutation(order.begin(), order.end()))
    if (is_order(problem, order)) best = std::min(best, peak_of_order(problem, order));
  return best;
}

TEST(OrderTest, FindsAndProvesTheBestOrderOfSmallGraphs) {
  int improved = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const OrderProblem problem = random_graph(seed, 7);
    const OrderResult result = search_order(problem);
    ASSERT_TRUE(is_order(problem, result.order));
    EXPECT_EQ(result.peak, best_by_trying_all(problem));
    EXPECT_EQ(result.peak, peak_of_order(problem, result.order));
    EXPECT_TRUE(result.is_optimal());
    std::vector<std::int32_t> given(problem.steps.size());
    std::iota(given.begin(), given.end(), 0);
    improved += result.peak < peak_of_order(problem, given) ? 1 : 0;
  }
  EXPECT_GT(improved, 20);
}

TEST(OrderTest, BoundsWhatItCouldNotFinish) {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const OrderProblem problem = random_graph(seed, 60);
    const OrderResult full = search_order(problem);
    ASSERT_TRUE(is_order(problem, full.order));
    OrderOptions little;
    little.step_budget = 20'000;
    const OrderResult brief = search_order(problem, little);
    ASSERT_TRUE(is_order(problem, brief.order));
    EXPECT_EQ(brief.peak, peak_of_order(problem, brief.order));
    EXPECT_LE(order_bound(problem), brief.bound);
    EXPECT_LE(brief.bound, full.peak);
    EXPECT_LE(full.peak, brief.peak);
    EXPECT_LE(full.bound, full.peak);
  }
}

TEST(OrderTest, RunsOneBranchAfterTheOtherWhereThatSaves) {
  // Two branches from one input: each widens to 100, then shrinks to 1. Side by side both would be alive.
  OrderProblem problem;
  problem.buffers = {{1, true, false}, {100}, {100}, {1}, {1}, {1, false, true}};
  problem.steps = {{{}, {0}, {1}, 0, {}},
                   {{}, {0}, {2}, 0, {}},
                   {{0}, {1}, {3}, 0, {}},
                   {{1}, {2}, {4}, 0, {}},
                   {{2, 3}, {3, 4}, {5}, 0, {}}};
  const OrderResult result = search_order(problem);
  EXPECT_EQ(peak_of_order(problem, {0, 1, 2, 3, 4}), 201);
  EXPECT_EQ(result.peak, 102);
  EXPECT_TRUE(result.is_optimal());
}

TEST(OrderTest, CountsAnOperandAndAResultOnceWhereOneMayOverwriteTheOther) {
  OrderProblem problem;
  problem.buffers = {{10, true, false}, {10, false, true}};
  problem.steps = {{{}, {0}, {1}, 3, {{1, 0}}}};
  EXPECT_EQ(search_order(problem).peak, 13);
  problem.buffers[0].to_end = true;
  EXPECT_EQ(search_order(problem).peak, 23);
}

TEST(OrderTest, TakesManyStepsWithinItsEffort) {
  const OrderProblem problem = random_graph(1, 10'000);
  const OrderResult result = search_order(problem);
  EXPECT_TRUE(is_order(problem, result.order));
  EXPECT_LE(result.bound, result.peak);
}

}  // namespace
}  // namespace bantam::plan
