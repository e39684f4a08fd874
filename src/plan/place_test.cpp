#include "plan/place.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "plan/bounds.h"
#include "plan/testing/instances.h"
#include "plan/verify.h"

namespace bantam::plan {
namespace {

constexpr std::array kOrders = {GreedyOrder::kSize,     GreedyOrder::kArea,     GreedyOrder::kLifetime,
                                GreedyOrder::kStart,    GreedyOrder::kConflict, GreedyOrder::kBreadth,
                                GreedyOrder::kTightArea};

Buffer alive(std::int64_t lower, std::int64_t upper, std::int64_t size) {
  return {.id = "b", .lower = lower, .upper = upper, .size = size};
}

Solution in_given_order(const Problem& problem, Fit fit) {
  std::vector<std::int32_t> order(problem.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  return place_in_order(problem, order, fit, "given");
}

/// Every planner of place.h.
std::vector<Solution> all_solutions(const Problem& problem) {
  std::vector<Solution> solutions;
  for (const GreedyOrder order : kOrders)
    for (const Fit fit : {Fit::kFirst, Fit::kBest}) solutions.push_back(place_greedy(problem, order, fit));
  solutions.push_back(place_skyline(problem));
  solutions.push_back(place_best(problem));
  return solutions;
}

TEST(PlaceTest, BuffersThatTouchInTimeMayShare) {
  const Problem problem{.buffers = {alive(0, 3, 64), alive(3, 5, 64), alive(5, 9, 64)}};
  for (const Solution& solution : all_solutions(problem)) EXPECT_EQ(solution.peak, 64) << solution.method;
}

TEST(PlaceTest, BuffersAliveTogetherDoNotShare) {
  const Problem problem{.buffers = {alive(0, 3, 64), alive(2, 5, 32)}};
  for (const Solution& solution : all_solutions(problem)) EXPECT_EQ(solution.peak, 96) << solution.method;
}

TEST(PlaceTest, ReusesGapThatJustFits) {
  // The first two leave [16, 48) free at steps 4 to 6, under the third.
  const Problem problem{.buffers = {alive(0, 9, 16), alive(0, 3, 32), alive(0, 9, 8), alive(4, 6, 32)}};
  EXPECT_EQ(in_given_order(problem, Fit::kFirst).offsets, (std::vector<std::int64_t>{0, 16, 48, 16}));
}

TEST(PlaceTest, DoesNotUseGapThatIsOneByteShort) {
  const Problem problem{.buffers = {alive(0, 9, 16), alive(0, 3, 32), alive(0, 9, 8), alive(4, 6, 33)}};
  EXPECT_EQ(in_given_order(problem, Fit::kFirst).offsets, (std::vector<std::int64_t>{0, 16, 48, 56}));
}

TEST(PlaceTest, ReusesLeadingGap) {
  const Problem problem{.buffers = {alive(0, 3, 32), alive(0, 9, 8), alive(4, 6, 32)}};
  EXPECT_EQ(in_given_order(problem, Fit::kFirst).offsets, (std::vector<std::int64_t>{0, 32, 0}));
}

TEST(PlaceTest, FirstFitTakesTheLowestGapAndBestFitTheTightest) {
  // At step 5 bytes [0, 40) and [50, 60) are free.
  const Problem problem{
      .buffers = {alive(0, 4, 40), alive(0, 9, 10), alive(0, 4, 10), alive(0, 9, 10), alive(5, 6, 10)}};
  EXPECT_EQ(in_given_order(problem, Fit::kFirst).offsets[4], 0);
  EXPECT_EQ(in_given_order(problem, Fit::kBest).offsets[4], 50);
}

TEST(PlaceTest, AlignmentCountsWhenMeasuringAGap) {
  // Bytes [10, 42) are free at step 5; the aligned start 16 leaves 26 of them.
  Problem problem{.buffers = {alive(0, 9, 10), alive(0, 4, 32), alive(0, 9, 10), alive(5, 6, 26)}};
  problem.buffers[3].alignment = 16;
  EXPECT_EQ(in_given_order(problem, Fit::kFirst).offsets[3], 16);
  problem.buffers[3].size = 27;
  EXPECT_EQ(in_given_order(problem, Fit::kFirst).offsets[3], 64);
}

TEST(PlaceTest, EmptyBuffersTakeNoSpace) {
  const Problem problem{.buffers = {alive(0, 3, 0), alive(0, 3, 0)}};
  for (const Solution& solution : all_solutions(problem)) EXPECT_EQ(solution.peak, 0) << solution.method;
  for (const Solution& solution : all_solutions({})) EXPECT_EQ(solution.peak, 0) << solution.method;
}

TEST(PlaceTest, FixedBuffersStayAndOthersGoAround) {
  Problem problem{.buffers = {alive(0, 9, 16), alive(0, 9, 16), alive(0, 9, 24)}};
  problem.buffers[1].fixed = 20;
  for (const Solution& solution : all_solutions(problem)) {
    EXPECT_TRUE(verify(problem, solution)) << solution.method;
    EXPECT_EQ(solution.offsets, (std::vector<std::int64_t>{0, 20, 36})) << solution.method;
  }
}

TEST(PlaceTest, EveryPlannerKeepsTheRulesOnRandomProblems) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Problem problem = testing::random_problem(
        seed, {.buffers = 40, .steps = 30, .max_size = 100, .max_alignment = 64, .fix_some = seed % 2 == 1});
    const std::int64_t bound = lower_bound(problem).bytes;
    for (const Solution& solution : all_solutions(problem)) {
      const auto verified = verify(problem, solution);
      EXPECT_TRUE(verified) << solution.method << ": " << verified.error().message;
      EXPECT_GE(solution.peak, bound) << solution.method;
    }
  }
}

TEST(PlaceTest, BestIsNoWorseThanAnyPlannerAndNoBetterThanTheOptimum) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Problem problem =
        testing::random_problem(seed, {.buffers = 6, .steps = 6, .max_size = 5, .max_alignment = 2});
    const Solution best = place_best(problem);
    EXPECT_GE(best.peak, testing::brute_force_peak(problem));
    for (const Solution& solution : all_solutions(problem)) EXPECT_LE(best.peak, solution.peak) << solution.method;
  }
}

TEST(PlaceTest, SameProblemGivesSameSolution) {
  const Problem problem =
      testing::random_problem(7, {.buffers = 300, .steps = 200, .max_size = 1000, .max_alignment = 16});
  const auto first = all_solutions(problem);
  const auto second = all_solutions(problem);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].offsets, second[i].offsets);
    EXPECT_EQ(first[i].method, second[i].method);
  }
}

TEST(PlaceTest, TenThousandBuffersAreHandled) {
  const Problem problem = testing::random_problem(1, {.buffers = 10'000, .steps = 5'000, .max_size = 1 << 20});
  const Solution solution = place_best(problem);
  const auto verified = verify(problem, solution);
  EXPECT_TRUE(verified) << verified.error().message;
}

}  // namespace
}  // namespace bantam::plan
