// Several memories: every tier holds what the plan says, to the byte, and results are those of one memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/testing/placed_fleet.h"
#include "support/models.h"

namespace bantam::testing {
namespace {

using compiler::testing::place_fleet;
using compiler::testing::run;
using ops::testing::GuardedMemory;
using ops::testing::kCanary;

using Outputs = std::vector<std::vector<std::byte>>;

/// A fleet with an arena of exactly the bytes promised in every tier, between canaries and inaccessible pages.
struct Tiered {
  Package package;
  std::vector<GuardedMemory> memories;
  std::vector<std::span<std::byte>> arenas;
  Fleet* fleet = nullptr;

  explicit Tiered(std::span<const std::byte> bytes, std::byte fill = kCanary) {
    EXPECT_TRUE(Package::open(bytes, &package).ok());
    for (std::size_t t = 0; t < package.tier_count(); ++t) {
      const Requirements need = package.tier_requirements(t);
      memories.emplace_back(static_cast<std::size_t>(need.arena_bytes), static_cast<std::size_t>(need.alignment));
      std::ranges::fill(memories.back().bytes(), fill);
      arenas.push_back(memories.back().bytes());
    }
  }
  bool place() {
    const Status placed = Fleet::place(package, arenas, &fleet);
    EXPECT_TRUE(placed.ok()) << placed.message;
    return placed.ok();
  }
  std::vector<Outputs> run_all(std::uint32_t rounds) {
    std::vector<Outputs> said;
    for (std::uint32_t round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < fleet->size(); ++i) said.push_back(run(*fleet->session(i), round));
    return said;
  }
  bool intact() const {
    return std::ranges::all_of(memories, [](const GuardedMemory& m) { return m.intact(); });
  }
};

/// As it was compiled for one arena, with the fast memory too small for it and the package in a slow one.
FleetSpec with_memories(FleetSpec fleet, const Requirements& one_arena, std::uint64_t parts) {
  const std::uint64_t fast = one_arena.table_bytes + 2048 + one_arena.activation_bytes / parts;
  fleet.memories = {{"slow", 64U << 20U, 6}, {"flash", 0, 24}, {"fast", fast, 1}};  // their order does not matter
  fleet.weights = "flash";
  return fleet;
}

class TieredModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(TieredModel, ComputesTheSameInExactlyThePromisedBytesOfEveryTier) {
  constexpr std::uint32_t kRounds = 2;
  const FleetSpec spec{.models = {GetParam().spec()}};
  auto one = place_fleet(spec);
  ASSERT_TRUE(one);
  std::vector<Outputs> expected;
  for (std::uint32_t round = 0; round < kRounds; ++round) expected.push_back(run(*one->fleet->session(0), round));
  for (const std::uint64_t parts : {1, 2, 8}) {
    SCOPED_TRACE(::testing::Message() << "a fast memory of one part in " << parts);
    const FleetSpec tiered_spec = with_memories(spec, one->need(), parts);
    const auto compiled = compile(tiered_spec);
    ASSERT_TRUE(compiled) << compiled.error().message;
    ASSERT_EQ(compiled->memories().size(), 2U);
    EXPECT_EQ(compiled->memories()[0].memory.name, "fast");
    for (const MemoryReport& m : compiled->memories()) EXPECT_LE(m.need.arena_bytes, m.memory.bytes) << m.memory.name;
    const AccessCost& cost = compiled->access_cost();
    EXPECT_LE(cost.all_fastest, cost.planned);
    EXPECT_LE(cost.planned, cost.all_slowest);
    const ModelReport& model = compiled->models()[0];
    EXPECT_LE(cost.planned, cost.unstreamed);
    EXPECT_EQ(cost.planned < cost.unstreamed, !model.streams.empty());
    Tiered tiered(compiled->package());
    ASSERT_TRUE(tiered.place());
    EXPECT_EQ(tiered.run_all(kRounds), expected);
    EXPECT_TRUE(tiered.intact());
    // The same plan in one block.
    auto block = compiler::testing::place_package(compiled->package());
    ASSERT_TRUE(block);
    EXPECT_EQ(run(*block->fleet->session(0), 0), expected[0]);
    EXPECT_TRUE(block->arena.intact());
  }
}

class ResidentWeights : public TieredModel {};

TEST_P(ResidentWeights, FillWhatIsLeftAndChangeNothing) {
  FleetSpec spec{.models = {GetParam().spec()}};
  auto one = place_fleet(spec);
  ASSERT_TRUE(one);
  spec = with_memories(spec, one->need(), 1);
  for (MemorySpec& memory : spec.memories)
    if (memory.name == "fast") memory.bytes += 400 << 10;
  const auto streamed = compile(spec);
  ASSERT_TRUE(streamed) << streamed.error().message;
  spec.resident = true;
  const auto resident = compile(spec);
  ASSERT_TRUE(resident) << resident.error().message;
  EXPECT_LE(resident->memories()[0].need.arena_bytes, resident->memories()[0].memory.bytes);
  EXPECT_LT(resident->access_cost().planned, streamed->access_cost().planned);
  std::int64_t bytes = 0;
  for (const StreamReport& weights : resident->models()[0].residents) bytes += weights.bytes;
  EXPECT_GT(bytes, 0);
  EXPECT_LE(bytes, resident->models()[0].state_bytes);
  Tiered tiered(resident->package());
  ASSERT_TRUE(tiered.place());
  for (std::uint32_t round = 0; round < 2; ++round)
    EXPECT_EQ(tiered.run_all(1)[0], run(*one->fleet->session(0), 0)) << round;
  EXPECT_TRUE(tiered.intact());
  tiered.fleet->session(0)->reset();
  one->fleet->session(0)->reset();
  EXPECT_EQ(tiered.run_all(1)[0], run(*one->fleet->session(0), 0)) << "after a reset";
}

TEST_P(TieredModel, UsesTheLastByteOfEveryTierAndNothingSmallerWillDo) {
  const FleetSpec spec{.models = {GetParam().spec()}};
  const auto one = compile(spec);
  ASSERT_TRUE(one) << one.error().message;
  const auto compiled = compile(with_memories(spec, one->requirements(), 3));
  ASSERT_TRUE(compiled) << compiled.error().message;
  constexpr std::byte kOther{0x5c};
  Tiered first(compiled->package());
  Tiered second(compiled->package(), kOther);
  for (std::size_t t = 0; t < first.arenas.size(); ++t) {
    if (first.arenas[t].empty()) continue;
    auto starved = first.arenas;
    starved[t] = starved[t].first(starved[t].size() - 1);
    Fleet* fleet = nullptr;
    const Status status = Fleet::place(first.package, starved, &fleet);
    EXPECT_EQ(status.code, StatusCode::kArenaTooSmall);
    EXPECT_EQ(status.index, static_cast<std::int32_t>(t));
    EXPECT_EQ(status.expected, static_cast<std::int64_t>(first.arenas[t].size()));
  }
  for (const auto& arena : first.arenas)
    EXPECT_TRUE(std::ranges::all_of(arena, [](std::byte b) { return b == kCanary; })) << "a failed placement wrote";
  ASSERT_TRUE(first.place() && second.place());
  first.run_all(1);
  second.run_all(1);
  for (std::size_t t = 0; t < first.arenas.size(); ++t) {
    std::size_t last = first.arenas[t].size();
    while (last > 0 && first.arenas[t][last - 1] == kCanary && second.arenas[t][last - 1] == kOther) --last;
    // A tail of scratch may stay untouched, such as the padding of a vector.
    EXPECT_LT(first.arenas[t].size() - last, 64U) << "tier " << t << " asks for bytes at the end that nothing uses";
  }
}

INSTANTIATE_TEST_SUITE_P(Bundled, TieredModel, ::testing::ValuesIn(sampled(quick_models())), test_name);

/// With states and without, read once and often.
std::vector<TestModel> small_models() {
  std::vector<TestModel> models = bundled_models();
  std::erase_if(models, [](const TestModel& m) { return m.name != "keyword" && m.name != "voice-activity"; });
  return models;
}
INSTANTIATE_TEST_SUITE_P(Bundled, ResidentWeights, ::testing::ValuesIn(sampled(small_models())), test_name);

TEST(TieredFleet, LanesAndLinksInTwoMemoriesComputeTheSame) {
  FleetSpec spec = bundled_fleet();
  for (std::size_t m = 0; m < spec.models.size(); ++m) spec.models[m].lane = m % 2 == 0 ? "even" : "odd";
  auto one = place_fleet(spec);
  ASSERT_TRUE(one);
  const auto compiled = compile(with_memories(spec, one->need(), 4));
  ASSERT_TRUE(compiled) << compiled.error().message;
  Tiered tiered(compiled->package());
  ASSERT_TRUE(tiered.place());
  for (std::uint32_t round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < tiered.fleet->size(); ++i)
      EXPECT_EQ(run(*tiered.fleet->session(i), round), run(*one->fleet->session(i), round))
          << one->fleet->session(i)->name();
  EXPECT_TRUE(tiered.intact());
}

TEST(TieredFleet, AMemoryThatIsTooSmallIsNamedWithTheLayerThatNeedsIt) {
  FleetSpec spec{.models = {bundled_models().front().spec()}};
  const auto one = compile(spec);
  ASSERT_TRUE(one) << one.error().message;
  spec.memories = {{"sram", one->requirements().table_bytes + 1024, 1}, {"psram", 256, 6}};
  const auto refused = compile(spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StatusCode::kArenaTooSmall);
  for (const char* part : {"memory 'psram' of 256 bytes is too small", "the least that was reached is ", "layer '"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  // What the message asks for is enough.
  const std::string& message = refused.error().message;
  const std::string key = "the least that was reached is ";
  spec.memories[1].bytes = std::stoull(message.substr(message.find(key) + key.size()));
  const auto enough = compile(spec);
  EXPECT_TRUE(enough) << enough.error().message;
}

TEST(TieredFleet, OneMemoryPlansAsNone) {
  FleetSpec spec{.models = {bundled_models().front().spec()}};
  const auto none = compile(spec);
  ASSERT_TRUE(none);
  spec.memories = {{"sram", 1U << 30U, 1}};
  const auto one = compile(spec);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->requirements().arena_bytes, none->requirements().arena_bytes);
  EXPECT_EQ(one->requirements().table_bytes, none->requirements().table_bytes);
  // Nor does a second one that nothing needs cost more than the session's address of it.
  spec.memories.push_back({"psram", 1U << 30U, 6});
  const auto two = compile(spec);
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_EQ(two->requirements().activation_bytes, none->requirements().activation_bytes);
  EXPECT_EQ(two->memories()[1].need.arena_bytes, 0U);
}

TEST(TieredFleet, ContradictingMemoriesAreRefused) {
  const ModelSpec model = bundled_models().front().spec();
  const auto refused = [&](std::vector<MemorySpec> memories, std::string weights) {
    const auto result = compile({.models = {model}, .memories = std::move(memories), .weights = std::move(weights)});
    return !result && result.error().code == StatusCode::kInvalidArgument && !result.error().remedy.empty();
  };
  EXPECT_TRUE(refused({{"a", 1 << 20, 1}, {"a", 1 << 20, 2}}, ""));
  EXPECT_TRUE(refused({{"", 1 << 20, 1}}, ""));
  EXPECT_TRUE(refused({{"a", 1 << 20, 0}}, ""));
  EXPECT_TRUE(refused({{"a", 1 << 20, -1}}, ""));
  EXPECT_TRUE(refused({{"a", 0, 1}}, ""));
  EXPECT_TRUE(refused({{"a", 0, 1}}, "a"));
  EXPECT_TRUE(refused({{"a", 1 << 20, 1}}, "flash"));
  EXPECT_TRUE(refused({}, "flash"));
  const auto nowhere = compile({.models = {model}, .resident = true});
  EXPECT_FALSE(nowhere);
  EXPECT_TRUE(refused({{"a", 9, 1}, {"b", 9, 1}, {"c", 9, 1}, {"d", 9, 1}, {"e", 9, 1}}, ""));
}

}  // namespace
}  // namespace bantam::testing
