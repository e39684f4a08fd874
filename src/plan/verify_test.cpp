#include "plan/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/place.h"
#include "plan/testing/instances.h"

namespace bantam::plan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Buffer named(const char* id, std::int64_t lower, std::int64_t upper, std::int64_t size) {
  return {.id = id, .lower = lower, .upper = upper, .size = size};
}

std::string error_of(const Problem& problem, std::vector<std::int64_t> offsets, std::int64_t peak) {
  const auto verified = verify(problem, {.offsets = std::move(offsets), .peak = peak, .method = "test"});
  return verified ? "no error" : verified.error().message;
}

TEST(VerifyTest, BuffersThatTouchInTimeOrInBytesMayBeNeighbours) {
  const Problem problem{.buffers = {named("a", 0, 2, 8), named("b", 2, 4, 8), named("c", 0, 4, 8)}};
  EXPECT_EQ(error_of(problem, {0, 0, 8}, 16), "no error");
}

TEST(VerifyTest, NamesTheTwoBuffersThatCollide) {
  const Problem problem{.buffers = {named("first", 0, 3, 8), named("second", 2, 4, 8)}};
  EXPECT_THAT(error_of(problem, {0, 7}, 15), AllOf(HasSubstr("'first'"), HasSubstr("'second'"), HasSubstr("overlap")));
}

TEST(VerifyTest, FindsACollisionInsideALargerBuffer) {
  const Problem problem{.buffers = {named("large", 0, 9, 100), named("small", 4, 5, 1)}};
  EXPECT_THAT(error_of(problem, {0, 50}, 100), HasSubstr("'small'"));
}

TEST(VerifyTest, EmptyBuffersCollideWithNothing) {
  const Problem problem{.buffers = {named("a", 0, 3, 8), named("empty", 0, 3, 0)}};
  EXPECT_EQ(error_of(problem, {0, 4}, 8), "no error");
}

TEST(VerifyTest, ChecksAlignmentFixedPlacePeakAndCapacity) {
  Problem problem{.buffers = {named("a", 0, 3, 8)}};
  problem.buffers[0].alignment = 8;
  EXPECT_EQ(error_of(problem, {8}, 16), "no error");
  EXPECT_THAT(error_of(problem, {4}, 12), HasSubstr("multiple of 8"));
  EXPECT_THAT(error_of(problem, {-8}, 0), HasSubstr("out of range"));
  EXPECT_THAT(error_of(problem, {8}, 15), HasSubstr("the stated peak is 15"));
  EXPECT_THAT(error_of(problem, {}, 0), HasSubstr("0 offsets for 1 buffers"));
  EXPECT_THAT(error_of(problem, {std::numeric_limits<std::int64_t>::max() - 7}, 0), HasSubstr("out of range"));
  problem.buffers[0].fixed = 0;
  EXPECT_THAT(error_of(problem, {8}, 16), HasSubstr("fixed at 0"));
  problem.capacity = 7;
  EXPECT_THAT(error_of(problem, {0}, 8), HasSubstr("the capacity is 7"));
}

/// What the verifier must decide, pair by pair.
bool any_pair_collides(const Problem& problem, const std::vector<std::int64_t>& offsets) {
  for (std::size_t i = 0; i < offsets.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Buffer& a = problem.buffers[i];
      const Buffer& b = problem.buffers[j];
      if (a.size > 0 && b.size > 0 && a.lower < b.upper && b.lower < a.upper && offsets[i] < offsets[j] + b.size &&
          offsets[j] < offsets[i] + a.size)
        return true;
    }
  return false;
}

TEST(VerifyTest, AgreesWithComparingEveryPair) {
  int collisions = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Problem problem = testing::random_problem(seed, {.buffers = 12, .steps = 12, .max_size = 6});
    Solution solution = place_greedy(problem, GreedyOrder::kSize, Fit::kFirst);
    std::mt19937_64 random(seed);
    solution.offsets[random() % solution.offsets.size()] = static_cast<std::int64_t>(random() % 30);
    solution.peak = 0;
    for (std::size_t i = 0; i < solution.offsets.size(); ++i)
      if (problem.buffers[i].size > 0)
        solution.peak = std::max(solution.peak, solution.offsets[i] + problem.buffers[i].size);
    const bool collides = any_pair_collides(problem, solution.offsets);
    collisions += collides ? 1 : 0;
    EXPECT_EQ(verify(problem, solution).has_value(), !collides);
  }
  EXPECT_GT(collisions, 100);
  EXPECT_LT(collisions, 1900);
}

}  // namespace
}  // namespace bantam::plan
