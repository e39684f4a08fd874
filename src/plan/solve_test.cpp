#include "plan/solve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "plan/problem_csv.h"
#include "plan/testing/instances.h"
#include "plan/verify.h"

namespace bantam::plan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

SolveResult solved(const Problem& problem, const SolveOptions& options = {}) {
  auto result = solve(problem, options);
  EXPECT_TRUE(result) << result.error().message;
  if (!result) return {};
  Problem unlimited = problem;
  unlimited.capacity.reset();
  const auto verified = verify(unlimited, result->solution);
  EXPECT_TRUE(verified) << verified.error().message;
  EXPECT_LE(result->lower_bound.bytes, result->proven_bound);
  EXPECT_LE(result->proven_bound, result->solution.peak);
  return *result;
}

TEST(SolveTest, EmptyProblemsNeedNothing) {
  EXPECT_EQ(solved({}).solution.peak, 0);
  EXPECT_EQ(solved({.buffers = {{.id = "empty", .lower = 0, .upper = 3, .size = 0}}}).solution.peak, 0);
}

/// Compares with the optimum found by trying all offsets, and expects the proof of it.
void expect_optimum(const testing::RandomOptions& options, std::uint64_t seeds) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Problem problem = testing::random_problem(seed, options);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << "\n" << format_problem_csv(problem));
    const SolveResult result = solved(problem);
    EXPECT_EQ(result.solution.peak, testing::brute_force_peak(problem));
    EXPECT_TRUE(result.is_optimal());
  }
}

TEST(SolveTest, FindsAndProvesTheOptimumOfTinyProblems) {
  expect_optimum({.buffers = 6, .steps = 6, .max_size = 4}, 400);
  expect_optimum({.buffers = 7, .steps = 5, .max_size = 3}, 200);
}

TEST(SolveTest, FindsAndProvesTheOptimumWithAlignments) {
  expect_optimum({.buffers = 5, .steps = 5, .max_size = 6, .max_alignment = 4}, 400);
}

TEST(SolveTest, FindsAndProvesTheOptimumWithFixedBuffers) {
  expect_optimum({.buffers = 6, .steps = 5, .max_size = 5, .fix_some = true}, 400);
  expect_optimum({.buffers = 5, .steps = 5, .max_size = 5, .max_alignment = 4, .fix_some = true}, 400);
}

TEST(SolveTest, ProvesThatTheLowerBoundCannotBeMet) {
  int above_bound = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Problem problem = testing::full_timeline(seed, 12, 7, 5);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << "\n" << format_problem_csv(problem));
    const SolveResult result = solved(problem);
    EXPECT_EQ(result.solution.peak, testing::brute_force_peak(problem));
    EXPECT_TRUE(result.is_optimal());
    above_bound += result.meets_lower_bound() ? 0 : 1;
  }
  EXPECT_GT(above_bound, 0);
}

TEST(SolveTest, CutRectanglesAreReassembledWithoutAFreeByte) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const SolveResult result = solved(testing::cut_rectangle(seed, 40, 30, 32 * 1024, 1024));
    EXPECT_TRUE(result.meets_lower_bound());
    EXPECT_EQ(result.solution.peak, 32 * 1024);
  }
}

TEST(SolveTest, StopsAtTheCapacity) {
  Problem problem = testing::cut_rectangle(5, 60, 40, 1 << 20, 1024);
  problem.capacity = 2 << 20;
  const SolveResult result = solved(problem);
  EXPECT_LE(result.solution.peak, 2 << 20);
  EXPECT_EQ(result.steps, 0);  // greedy placement is good enough
}

TEST(SolveTest, ImpossibleCapacityIsShownByTheProvenBound) {
  Problem problem{
      .buffers = {{.id = "a", .lower = 0, .upper = 2, .size = 60}, {.id = "b", .lower = 1, .upper = 3, .size = 60}}};
  problem.capacity = 100;
  const SolveResult result = solved(problem);
  EXPECT_EQ(result.solution.peak, 120);
  EXPECT_EQ(result.proven_bound, 120);
}

TEST(SolveTest, CollidingFixedBuffersAreAnError) {
  const Problem problem{.buffers = {{.id = "a", .lower = 0, .upper = 2, .size = 60, .fixed = 0},
                                    {.id = "b", .lower = 1, .upper = 3, .size = 60, .fixed = 59}}};
  const auto result = solve(problem);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr("'a'"), HasSubstr("'b'"), HasSubstr("fixed")));
}

TEST(SolveTest, InvalidProblemsAreAnError) {
  const auto result = solve({.buffers = {{.id = "a", .lower = 0, .upper = 0, .size = 60}}});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("'a'"));
}

TEST(SolveTest, BufferThatSpansEverythingDoesNotJoinTheParts) {
  Problem problem = testing::cut_rectangle(1, 30, 20, 64 * 64, 64);
  for (Buffer& b : testing::cut_rectangle(2, 30, 20, 64 * 64, 64).buffers) {
    b.lower += 20;
    b.upper += 20;
    problem.buffers.push_back(b);
  }
  problem.buffers.push_back({.id = "all", .lower = 0, .upper = 40, .size = 640});
  for (Buffer& b : problem.buffers) b.alignment = 64;
  const SolveResult result = solved(problem);
  EXPECT_TRUE(result.meets_lower_bound());
  EXPECT_EQ(result.solution.offsets.back(), 0);
}

TEST(SolveTest, SameProblemGivesSameSolution) {
  const Problem problem = testing::random_problem(3, {.buffers = 120, .steps = 90, .max_size = 4096});
  const SolveOptions options{.step_budget = 20'000'000};
  const SolveResult first = solved(problem, options);
  const SolveResult second = solved(problem, options);
  EXPECT_EQ(first.solution.offsets, second.solution.offsets);
  EXPECT_EQ(first.steps, second.steps);
}

TEST(SolveTest, KeepsTheStepBudgetAndReportsProgress) {
  std::int64_t reports = 0;
  SolveOptions options{.step_budget = 200'000'000};
  options.progress = [&](const SolveProgress& progress) {
    ++reports;
    EXPECT_LE(progress.bound, progress.peak);
    EXPECT_LT(progress.target, progress.peak);
  };
  const SolveResult result = solved(testing::cut_rectangle(1, 400, 300, 1 << 20, 1), options);
  if (!result.meets_lower_bound()) {
    EXPECT_GT(reports, 0);
  }
  EXPECT_LE(result.steps, options.step_budget * 11 / 10);
}

TEST(SolveTest, PassedDeadlineLeavesTheGreedySolution) {
  SolveOptions options;
  options.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  const SolveResult result = solved(testing::random_problem(1, {.buffers = 200, .steps = 150}), options);
  EXPECT_EQ(result.steps, 0);
}

TEST(SolveTest, SearchForTheBoundLeavesRoomForLesserImprovements) {
  // Far too hard to reassemble, so the search for the bound must not use up the budget.
  const Problem problem = testing::cut_rectangle(1, 400, 300, 1 << 20, 1);
  const std::int64_t greedy = solved(problem, {.step_budget = 0}).solution.peak;
  const SolveResult result = solved(problem, {.step_budget = 200'000'000});
  EXPECT_FALSE(result.meets_lower_bound());
  EXPECT_LT(result.solution.peak, greedy);
}

TEST(SolveTest, DeadlineEndsAnUnlimitedSearch) {
  SolveOptions options{.step_budget = kUnlimitedSearchSteps};
  options.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  solved(testing::cut_rectangle(1, 400, 300, 1 << 20, 1), options);
  EXPECT_GE(std::chrono::steady_clock::now(), *options.deadline);
}

TEST(SolveTest, TenThousandBuffersAreHandled) {
  for (const std::int64_t steps : {300, 30'000}) {
    Problem problem = testing::random_problem(1, {.buffers = 10'000, .steps = steps, .max_size = 1 << 20});
    if (steps == 30'000)
      for (Buffer& b : problem.buffers) b.upper = std::min(b.upper, b.lower + 40);
    const SolveResult result = solved(problem, {.step_budget = 100'000'000});
    EXPECT_LT(static_cast<double>(result.solution.peak), 1.2 * static_cast<double>(result.lower_bound.bytes));
  }
}

TEST(SolveTest, SolvesInstancesLikeThePublicOnesWithinTheirCapacity) {
  for (testing::CutFamily family : testing::cut_families()) {
    family.cut.buffers = 80;
    const Problem problem = testing::cut_square(1, family.cut);
    SCOPED_TRACE(::testing::Message() << "family " << family.name << ", seed 1");
    EXPECT_LE(solved(problem).solution.peak, *problem.capacity);
  }
}

/// The benchmark instances lie beside the repository on some machines; their capacity is in the file name.
TEST(SolveTest, SolvesTheSharedBenchmarkWithinCapacity) {
  const std::filesystem::path folder = "../shared/benchmarks/memory-planning";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no instances in " << folder;
  int instances = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".csv") continue;
    SCOPED_TRACE(entry.path().string());
    auto problem = read_problem_csv(entry.path().string());
    ASSERT_TRUE(problem) << problem.error().message;
    problem->capacity = std::stoll(entry.path().stem().extension().string().substr(1));
    const SolveResult result = solved(*problem, {.step_budget = 3'000'000'000});
    EXPECT_LE(result.solution.peak, *problem->capacity);
    ++instances;
  }
  EXPECT_GT(instances, 0);
}

}  // namespace
}  // namespace bantam::plan
