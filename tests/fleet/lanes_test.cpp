// Lanes and priorities: what can be alive together never meets in memory, and nobody can tell from the results.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "compiler/testing/placed_fleet.h"
#include "package/tables.h"
#include "support/models.h"

namespace bantam::testing {
namespace {

using compiler::testing::place_fleet;
using compiler::testing::PlacedFleet;
using compiler::testing::run;

using Outputs = std::vector<std::vector<std::byte>>;
constexpr std::uint32_t kRounds = 3;

/// Two lanes; in one of them two priorities, and two sessions that take turns.
FleetSpec fleet_with_lanes() {
  FleetSpec fleet;
  for (const TestModel& model : quick_models())
    if (model.name != "shape-detector") fleet.models.push_back(model.spec());
  for (ModelSpec& model : fleet.models) model.lane = "sound";
  const auto model = [&](const char* name) -> ModelSpec& {
    return *std::ranges::find(fleet.models, name, &ModelSpec::name);
  };
  model("denoise").priority = 2;
  model("voice-activity").priority = 2;
  model("sign").lane = "sight";
  model("scene-backbone").lane = "sight";
  model("scene-head").lane = "sight";
  fleet.links = {{"denoise", "enhanced", "voice-activity", "frame"}};
  return fleet;
}

std::vector<bool> linked_inputs(Session& session) {
  std::vector<bool> linked(session.input_count(), false);
  if (session.name() == "voice-activity") linked[static_cast<std::size_t>(session.find_input("frame"))] = true;
  return linked;
}

/// What the sessions say one after another, each `kRounds` times, in the order of the package.
std::vector<std::vector<Outputs>> in_turn(PlacedFleet& placed) {
  std::vector<std::vector<Outputs>> said(placed.fleet->size());
  for (std::uint32_t round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < said.size(); ++i) {
      Session& session = *placed.fleet->session(i);
      said[i].push_back(run(session, round, linked_inputs(session)));
    }
  return said;
}

std::size_t index_of(PlacedFleet& placed, std::string_view name) {
  for (std::size_t i = 0; i < placed.fleet->size(); ++i)
    if (placed.fleet->session(i)->name() == name) return i;
  ADD_FAILURE() << "no session " << name;
  return 0;
}

bool exclude_each_other(const Package& package, std::size_t a, std::size_t b) {
  return package.session_lane(a) == package.session_lane(b) &&
         package.session_priority(a) == package.session_priority(b);
}

TEST(Lanes, TheArenaHasTheLargestSessionOfEveryLaneAndPriorityAndNoMore) {
  auto placed = place_fleet(fleet_with_lanes());
  ASSERT_TRUE(placed);
  const auto& sessions = placed->compiled->sessions();
  std::map<std::pair<std::string, int>, std::uint64_t> largest;
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    EXPECT_EQ(placed->package.session_lane(i), sessions[i].lane);
    EXPECT_EQ(placed->package.session_priority(i), sessions[i].priority);
    std::uint64_t& most = largest[{sessions[i].lane, sessions[i].priority}];
    most = std::max(most, sessions[i].activation_bytes);
  }
  ASSERT_EQ(largest.size(), 3U);
  std::uint64_t sum = 0;
  for (const auto& [group, bytes] : largest) sum += bytes;
  EXPECT_GE(placed->need().activation_bytes, sum);
  EXPECT_LT(placed->need().activation_bytes, sum + largest.size() * format::kArenaAlignment);
  FleetSpec one_lane = fleet_with_lanes();
  for (ModelSpec& model : one_lane.models) {
    model.lane.clear();
    model.priority = 0;
  }
  auto shared = place_fleet(one_lane);
  ASSERT_TRUE(shared);
  EXPECT_LT(shared->need().activation_bytes, placed->need().activation_bytes);
  EXPECT_EQ(shared->need().state_bytes, placed->need().state_bytes);
}

TEST(Lanes, ASessionWritesNothingThatAnotherLaneOrPriorityHas) {
  auto placed = place_fleet(fleet_with_lanes());
  ASSERT_TRUE(placed);
  const auto& sessions = placed->compiled->sessions();
  in_turn(*placed);
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    const std::vector<std::byte> before(placed->bytes().begin(), placed->bytes().end());
    Session& session = *placed->fleet->session(i);
    run(session, 77, linked_inputs(session));
    for (std::size_t other = 0; other < sessions.size(); ++other) {
      if (exclude_each_other(placed->package, i, other)) continue;
      const auto first = static_cast<std::ptrdiff_t>(sessions[other].activation_offset);
      const auto last = first + static_cast<std::ptrdiff_t>(sessions[other].activation_bytes);
      EXPECT_TRUE(std::equal(before.begin() + first, before.begin() + last, placed->bytes().begin() + first))
          << sessions[i].name << " wrote where " << sessions[other].name << " works";
    }
  }
}

/// Runs a session between any two steps of another.
struct Interrupter {
  Session* session = nullptr;
  Outputs expected{};
  std::uint32_t seed = 0;
  std::size_t runs = 0;

  static Status after(void* context, const Session&, std::size_t) {
    auto& self = *static_cast<Interrupter*>(context);
    self.session->reset();
    EXPECT_EQ(run(*self.session, self.seed), self.expected);
    ++self.runs;
    return ok_status();
  }
};

void expect_equal_when_interrupted(const char* low, const char* high) {
  SCOPED_TRACE(std::string(high) + " between the steps of " + low);
  auto quiet = place_fleet(fleet_with_lanes());
  auto placed = place_fleet(fleet_with_lanes());
  ASSERT_TRUE(quiet && placed);
  Interrupter interrupter{placed->fleet->session(index_of(*placed, high)), {}, 5};
  interrupter.expected = run(*quiet->fleet->session(index_of(*quiet, high)), interrupter.seed);
  const Observer observer{&interrupter, nullptr, Interrupter::after};
  Session& session = *placed->fleet->session(index_of(*placed, low));
  session.set_observer(&observer);
  for (std::uint32_t round = 0; round < kRounds; ++round)
    EXPECT_EQ(run(session, round), run(*quiet->fleet->session(index_of(*quiet, low)), round)) << "round " << round;
  EXPECT_GE(interrupter.runs, kRounds * 2);
  EXPECT_TRUE(placed->arena.intact());
}

TEST(Lanes, AHigherPriorityMayRunBetweenAnyTwoSteps) { expect_equal_when_interrupted("keyword", "denoise"); }

TEST(Lanes, ASessionOfAnotherLaneMayRunBetweenAnyTwoSteps) {
  expect_equal_when_interrupted("scene-backbone", "keyword");
  expect_equal_when_interrupted("keyword", "sign");
}

TEST(Lanes, RunInThreadsOfTheirOwnAtTheSameTime) {
  auto quiet = place_fleet(fleet_with_lanes());
  auto placed = place_fleet(fleet_with_lanes());
  ASSERT_TRUE(quiet && placed);
  const auto expected = in_turn(*quiet);
  std::vector<std::vector<Outputs>> said(expected.size());
  const auto run_lane = [&](std::string_view lane) {
    for (std::uint32_t round = 0; round < kRounds; ++round)
      for (std::size_t i = 0; i < said.size(); ++i) {
        Session& session = *placed->fleet->session(i);
        if (placed->package.session_lane(i) == lane) said[i].push_back(run(session, round, linked_inputs(session)));
      }
  };
  std::thread sight(run_lane, "sight");
  std::thread sound(run_lane, "sound");
  sight.join();
  sound.join();
  EXPECT_EQ(said, expected);
  EXPECT_TRUE(placed->arena.intact());
}

}  // namespace
}  // namespace bantam::testing
