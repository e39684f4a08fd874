#include "plan/bounds.h"

#include <gtest/gtest.h>

#include "plan/testing/instances.h"

namespace bantam::plan {
namespace {

Buffer buffer(std::int64_t lower, std::int64_t upper, std::int64_t size, std::int64_t alignment = 1) {
  return {.id = "b", .lower = lower, .upper = upper, .size = size, .alignment = alignment};
}

TEST(LowerBoundTest, IsTheLargestSumAliveAtOnce) {
  const auto bound = lower_bound({.buffers = {buffer(0, 4, 10), buffer(2, 6, 20), buffer(4, 8, 15), buffer(7, 9, 5)}});
  EXPECT_EQ(bound.bytes, 35);
  EXPECT_EQ(bound.peaks, (std::vector<StepRange>{{4, 6}}));
  EXPECT_EQ(bound.peak_buffers, (std::vector<std::int32_t>{1, 2}));
}

TEST(LowerBoundTest, NamesEveryPeakAndJoinsNeighbours) {
  const auto bound = lower_bound({.buffers = {buffer(0, 2, 10), buffer(2, 4, 10), buffer(6, 7, 10)}});
  EXPECT_EQ(bound.bytes, 10);
  EXPECT_EQ(bound.peaks, (std::vector<StepRange>{{0, 4}, {6, 7}}));
  EXPECT_EQ(bound.peak_buffers, (std::vector<std::int32_t>{0}));
}

TEST(LowerBoundTest, EmptyProblemsAndEmptyBuffersNeedNothing) {
  EXPECT_EQ(lower_bound({}).bytes, 0);
  const auto bound = lower_bound({.buffers = {buffer(0, 3, 0), buffer(1, 2, 0, 64)}});
  EXPECT_EQ(bound.bytes, 0);
  EXPECT_TRUE(bound.peaks.empty());
}

TEST(LowerBoundTest, CountsPaddingThatEveryStackMustContain) {
  // 10 bytes padded to 16, then 10: the topmost needs no padding.
  EXPECT_EQ(lower_bound({.buffers = {buffer(0, 1, 10, 16), buffer(0, 1, 10, 16)}}).bytes, 26);
  // The buffer without alignment fits into the padding of the others.
  EXPECT_EQ(lower_bound({.buffers = {buffer(0, 1, 10, 16), buffer(0, 1, 10, 16), buffer(0, 1, 6, 1)}}).bytes, 26);
}

TEST(LowerBoundTest, FixedOffsetsRaiseTheBound) {
  Buffer high = buffer(0, 2, 10);
  high.fixed = 100;
  const auto bound = lower_bound({.buffers = {high, buffer(0, 5, 50)}});
  EXPECT_EQ(bound.bytes, 110);
  EXPECT_EQ(bound.peaks, (std::vector<StepRange>{{0, 2}}));
}

TEST(LowerBoundTest, NeverExceedsTheOptimumOfTinyProblems) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Problem problem = testing::random_problem(
        seed, {.buffers = 5, .steps = 5, .max_size = 5, .max_alignment = 4, .fix_some = seed % 2 == 0});
    EXPECT_LE(lower_bound(problem).bytes, testing::brute_force_peak(problem));
  }
}

}  // namespace
}  // namespace bantam::plan
