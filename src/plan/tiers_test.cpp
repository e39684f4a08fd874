#include "plan/tiers.h"

#include <gtest/gtest.h>

#include <random>

#include "plan/verify.h"

namespace bantam::plan {
namespace {

Problem random_problem(std::mt19937& random, std::vector<std::int64_t>* accessed) {
  Problem problem;
  const auto count = 1 + random() % 14;
  for (std::size_t i = 0; i < count; ++i) {
    const auto lower = static_cast<std::int64_t>(random() % 12);
    const auto size = static_cast<std::int64_t>(16 * (random() % 20));
    problem.buffers.push_back(
        {"b" + std::to_string(i), lower, lower + 1 + static_cast<std::int64_t>(random() % 6), size, 16, {}});
    accessed->push_back(size * static_cast<std::int64_t>(random() % 6));
  }
  return problem;
}

/// Every tier by itself is a solution of the buffers that it has.
void expect_sound(const Problem& problem, const std::vector<std::int64_t>& accessed, const std::vector<Tier>& tiers,
                  const TierPlan& plan) {
  double cost = 0;
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    Problem part;
    Solution solution;
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
      if (plan.tiers[b] != t) continue;
      part.buffers.push_back(problem.buffers[b]);
      solution.offsets.push_back(plan.offsets[b]);
      cost += tiers[t].cost * static_cast<double>(accessed[b]);
    }
    solution.peak = plan.peaks[t];
    const auto verified = verify(part, solution);
    EXPECT_TRUE(verified) << verified.error().message;
    if (t + 1 < tiers.size()) {
      EXPECT_LE(plan.peaks[t], tiers[t].capacity);
    }
  }
  EXPECT_EQ(plan.fits, plan.peaks.back() <= tiers.back().capacity);
  EXPECT_DOUBLE_EQ(plan.cost, cost);
}

TEST(Tiers, EveryMemoryHoldsWhatItsCapacityAllows) {
  const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(::testing::Message() << "round " << round << ", rerun with --gtest_random_seed=" << seed);
    std::vector<std::int64_t> accessed;
    const Problem problem = random_problem(random, &accessed);
    std::vector<Tier> tiers;
    for (std::size_t t = 0; t < 1 + random() % 3; ++t)
      tiers.push_back({static_cast<std::int64_t>(random() % 800), static_cast<double>(1 + 3 * t)});
    const auto plan = plan_tiers(problem, accessed, tiers);
    ASSERT_TRUE(plan) << plan.error().message;
    expect_sound(problem, accessed, tiers, *plan);
  }
}

/// The least cost there is, by trying every assignment of buffers to two memories.
double least_cost(const Problem& problem, const std::vector<std::int64_t>& accessed, const std::vector<Tier>& tiers) {
  double least = -1;
  for (std::uint32_t fast = 0; fast < (1U << problem.buffers.size()); ++fast) {
    Problem part;
    double cost = 0;
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
      const bool in = ((fast >> b) & 1U) != 0;
      if (in) part.buffers.push_back(problem.buffers[b]);
      cost += tiers[in ? 0 : 1].cost * static_cast<double>(accessed[b]);
    }
    if (least >= 0 && cost >= least) continue;
    part.capacity = tiers[0].capacity;
    const auto solved = solve(part, {});
    if (solved && solved->solution.peak <= tiers[0].capacity) least = cost;
  }
  return least;
}

TEST(Tiers, CostLittleMoreThanTheBestAssignment) {
  std::mt19937 random(7);
  double planned = 0;
  double best = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<std::int64_t> accessed;
    Problem problem = random_problem(random, &accessed);
    problem.buffers.resize(std::min<std::size_t>(problem.buffers.size(), 9));
    accessed.resize(problem.buffers.size());
    const std::vector<Tier> tiers = {{static_cast<std::int64_t>(100 + random() % 500), 1}, {1 << 20, 8}};
    const auto plan = plan_tiers(problem, accessed, tiers);
    ASSERT_TRUE(plan);
    const double least = least_cost(problem, accessed, tiers);
    EXPECT_GE(plan->cost, least - 1e-6) << "round " << round;
    planned += plan->cost;
    best += least;
  }
  EXPECT_LE(planned, 1.10 * best);
}

TEST(Tiers, HotBuffersAreFastAndColdOnesAreNot) {
  const Problem problem{{{"cold", 0, 10, 4096, 16, {}}, {"hot", 4, 6, 4096, 16, {}}}, {}};
  const std::vector<std::int64_t> accessed = {2 * 4096, 9 * 4096};
  const auto plan = plan_tiers(problem, accessed, std::vector<Tier>{{4096, 1}, {8192, 4}});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->tiers, (std::vector<std::uint32_t>{1, 0}));
  EXPECT_TRUE(plan->fits);
  const auto starved = plan_tiers(problem, accessed, std::vector<Tier>{{4096, 1}, {4095, 4}});
  ASSERT_TRUE(starved);
  EXPECT_FALSE(starved->fits);
  EXPECT_EQ(starved->peaks.back(), 4096);
}

}  // namespace
}  // namespace bantam::plan
