#include "compiler/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace bantam::compiler {
namespace {

bool exclude_each_other(const LaneSession& a, const LaneSession& b) {
  return a.lane == b.lane && a.priority == b.priority;
}

std::vector<LaneSession> random_fleet(std::mt19937& random, std::size_t tiers) {
  std::vector<LaneSession> fleet(1 + random() % 9);
  for (LaneSession& s : fleet) {
    s.lane = std::string(1, static_cast<char>('a' + random() % 3));
    s.priority = static_cast<int>(random() % 3) - 1;
    for (std::size_t t = 0; t < tiers; ++t) s.bytes.push_back(random() % 5 == 0 ? 0 : random() % 2000 * 64);
  }
  return fleet;
}

/// What no placement can go below: the largest sessions of all groups are alive together.
std::uint64_t clique_bound(const std::vector<LaneSession>& fleet, std::size_t tier) {
  std::map<std::pair<std::string, int>, std::uint64_t> largest;
  for (const LaneSession& s : fleet) {
    std::uint64_t& most = largest[{s.lane, s.priority}];
    most = std::max(most, s.bytes[tier]);
  }
  std::uint64_t sum = 0;
  for (const auto& [group, bytes] : largest) sum += bytes;
  return sum;
}

TEST(Lanes, SessionsThatExcludeEachOtherShareAndAllOthersAreDisjointInTheLeastMemory) {
  const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(::testing::Message() << "round " << round << ", rerun with --gtest_random_seed=" << seed);
    const std::size_t tiers = 1 + random() % 3;
    const std::vector<LaneSession> fleet = random_fleet(random, tiers);
    const Grouping grouping = group_sessions(fleet, tiers);
    for (std::size_t t = 0; t < tiers; ++t) {
      const auto area = [&](std::size_t s) { return grouping.areas[grouping.of_session[s] * tiers + t]; };
      std::uint64_t end = 0;
      for (std::size_t a = 0; a < fleet.size(); ++a) {
        EXPECT_GE(area(a).bytes(), fleet[a].bytes[t]);
        EXPECT_EQ(area(a).offset() % format::kArenaAlignment, 0U);
        end = std::max(end, area(a).offset() + fleet[a].bytes[t]);
        for (std::size_t b = 0; b < a; ++b) {
          if (exclude_each_other(fleet[a], fleet[b])) {
            EXPECT_EQ(area(a).offset(), area(b).offset());
          } else {
            EXPECT_TRUE(area(a).offset() + area(a).bytes() <= area(b).offset() ||
                        area(b).offset() + area(b).bytes() <= area(a).offset());
          }
        }
      }
      // All sizes are multiples of the alignment here, so that nothing is lost to it.
      EXPECT_EQ(end, clique_bound(fleet, t));
    }
    for (std::size_t s = 0; s < fleet.size(); ++s) {
      const format::Group& group = grouping.groups[grouping.of_session[s]];
      EXPECT_EQ(grouping.lanes[group.lane()], fleet[s].lane);
      EXPECT_EQ(group.priority(), fleet[s].priority);
    }
  }
}

TEST(Lanes, AFleetWithoutThemIsPlain) {
  const std::vector<LaneSession> none = {{"", 0, {10}}, {"", 0, {20}}};
  EXPECT_TRUE(group_sessions(none, 1).is_plain());
  for (const LaneSession& other : {LaneSession{"a", 0, {1}}, LaneSession{"", 1, {1}}}) {
    EXPECT_FALSE(group_sessions(std::vector{other}, 1).is_plain());
    EXPECT_FALSE(group_sessions(std::vector{none[0], other}, 1).is_plain());
  }
}

}  // namespace
}  // namespace bantam::compiler
