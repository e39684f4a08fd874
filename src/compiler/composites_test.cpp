#include "compiler/composites.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace bantam::compiler {
namespace {

/// Do two buffers use a byte at the same step?
bool collide(const Composite& a, std::int64_t a_offset, const Composite& b, std::int64_t b_offset) {
  for (const Part& p : a.parts)
    for (const Part& q : b.parts)
      if (p.lower < q.upper && q.lower < p.upper && a_offset + p.offset < b_offset + q.offset + q.bytes &&
          b_offset + q.offset < a_offset + p.offset + p.bytes)
        return true;
  return false;
}

TEST(Composites, AreDisjointAlignedAndNotBelowTheBound) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto up_to = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
    std::vector<Composite> composites;
    for (int i = 0; i < 12; ++i) {
      Composite c;
      c.alignment = std::int64_t{1} << up_to(7);
      std::int64_t step = up_to(10);
      for (std::int64_t p = 0; p <= up_to(3); ++p) {
        const std::int64_t steps = 1 + up_to(4);
        c.parts.push_back({step, step + steps, up_to(100), up_to(300)});
        step += steps;
      }
      composites.push_back(c);
    }
    const CompositePlan plan = place_composites(composites, 30);
    ASSERT_EQ(plan.offsets.size(), composites.size());
    std::int64_t peak = 0;
    for (std::size_t i = 0; i < composites.size(); ++i) {
      ASSERT_GE(plan.offsets[i], 0);
      ASSERT_EQ(plan.offsets[i] % composites[i].alignment, 0);
      for (const Part& p : composites[i].parts) peak = std::max(peak, plan.offsets[i] + p.offset + p.bytes);
      for (std::size_t j = 0; j < i; ++j)
        ASSERT_FALSE(collide(composites[i], plan.offsets[i], composites[j], plan.offsets[j]));
    }
    ASSERT_EQ(plan.peak, peak);
    ASSERT_LE(plan.bound, plan.peak);
  }
}

TEST(Composites, WhatAPartDoesNotNeedIsOthers) {
  // The first buffer's upper half is free at step 0, when the second needs as much.
  const std::vector<Composite> composites = {{{{0, 1, 0, 64}, {1, 2, 0, 128}}, 1}, {{{0, 1, 0, 64}}, 1}};
  const CompositePlan plan = place_composites(composites, 0);
  EXPECT_EQ(plan.peak, 128);
  EXPECT_EQ(plan.bound, 128);
}

TEST(Composites, TheLongestBufferIsABound) {
  const CompositePlan plan = place_composites({{{{0, 1, 100, 28}, {1, 2, 0, 64}}, 1}}, 0);
  EXPECT_EQ(plan.peak, 128);
  EXPECT_EQ(plan.bound, 128);
}

TEST(Composites, NoneTakeNothing) { EXPECT_EQ(place_composites({}, 10).peak, 0); }

}  // namespace
}  // namespace bantam::compiler
