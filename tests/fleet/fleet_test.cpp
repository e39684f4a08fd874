// Many models in one arena: it is little larger than its largest member needs, and nobody notices the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>

#include "bantam/open_fleet.h"
#include "compiler/testing/placed_fleet.h"
#include "io/testing/temporary_folder.h"
#include "support/models.h"

namespace bantam::testing {
namespace {

using compiler::testing::outputs_of;
using compiler::testing::place_fleet;
using compiler::testing::PlacedFleet;
using compiler::testing::run;

using Outputs = std::vector<std::vector<std::byte>>;

/// The arena that sharing must reach: all state and tables, the links, and the largest activation plan.
void expect_close_to_largest_member(const PlacedFleet& placed) {
  std::uint64_t largest = 0;
  for (const ModelReport& model : placed.compiled->models())
    largest = std::max(largest, static_cast<std::uint64_t>(model.activation_bytes));
  const Requirements need = placed.need();
  const auto bound = static_cast<double>(need.state_bytes + need.table_bytes + need.link_bytes + largest);
  EXPECT_LE(static_cast<double>(need.arena_bytes), 1.10 * bound);
  EXPECT_LT(need.arena_bytes, placed.compiled->separate_bytes());
}

/// What each model says alone in the first `rounds` invokes, with seeded inputs per round.
std::map<std::string, std::vector<Outputs>> alone(const FleetSpec& fleet, int rounds) {
  std::map<std::string, std::vector<Outputs>> said;
  for (const ModelSpec& model : fleet.models) {
    auto placed = place_fleet({.models = {model}});
    if (!placed) continue;
    for (int round = 0; round < rounds; ++round)
      said[model.name].push_back(run(*placed->fleet->session(0), static_cast<std::uint32_t>(round)));
  }
  return said;
}

/// Invokes the sessions of a fleet without links in a random order, each `rounds` times, and compares every output.
void expect_same_in_any_order(PlacedFleet& placed, const std::map<std::string, std::vector<Outputs>>& expected,
                              int rounds, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < placed.fleet->size(); ++i) order.insert(order.end(), static_cast<std::size_t>(rounds), i);
  std::ranges::shuffle(order, random);
  std::vector<std::uint32_t> next(placed.fleet->size(), 0);
  for (const std::size_t i : order) {
    Session& session = *placed.fleet->session(i);
    const std::uint32_t round = next[i]++;
    ASSERT_EQ(run(session, round), expected.at(std::string(session.name())).at(round))
        << session.name() << ", invoke " << round << ", rerun with --gtest_random_seed=" << seed;
  }
  EXPECT_TRUE(placed.arena.intact());
}

unsigned random_seed() { return static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed()); }

void expect_fleet_equals_its_members(const FleetSpec& spec) {
  constexpr int kRounds = 3;
  const auto expected = alone(spec, kRounds);
  auto placed = place_fleet(spec);
  ASSERT_TRUE(placed);
  expect_close_to_largest_member(*placed);
  for (unsigned order = 0; order < 3; ++order) {
    expect_same_in_any_order(*placed, expected, kRounds, random_seed() + order);
    for (std::size_t i = 0; i < placed->fleet->size(); ++i) placed->fleet->session(i)->reset();
  }
}

FleetSpec unlinked(const std::vector<TestModel>& models) {
  FleetSpec fleet;
  for (const TestModel& model : models) fleet.models.push_back(model.spec());
  return fleet;
}

TEST(BundledFleet, EqualsItsModelsAloneInAnyOrder) { expect_fleet_equals_its_members(unlinked(quick_models())); }

TEST(SharedFleet, OfAllModelsEqualsItsModelsAloneInAnyOrder) {
  if (!have_shared_models()) GTEST_SKIP() << kNoSharedModels;
  const FleetSpec spec = unlinked(sampled(shared_models()));
  ASSERT_GE(spec.models.size(), 7U);
  expect_fleet_equals_its_members(spec);
}

/// One link of a fleet against the two models run one after the other by hand.
void expect_link_carries(PlacedFleet& linked, const LinkSpec& link, int rounds) {
  const auto models = bundled_models();
  const auto spec_of = [&](const std::string& name) {
    return std::ranges::find(models, name, &TestModel::name)->spec();
  };
  auto producer = place_fleet({.models = {spec_of(link.from_session)}});
  auto consumer = place_fleet({.models = {spec_of(link.to_session)}});
  ASSERT_TRUE(producer);
  ASSERT_TRUE(consumer);
  Session& from = *producer->fleet->session(0);
  Session& to = *consumer->fleet->session(0);
  Session& linked_from = *linked.fleet->find(link.from_session);
  Session& linked_to = *linked.fleet->find(link.to_session);
  const auto output = static_cast<std::size_t>(from.find_output(link.output));
  const auto input = static_cast<std::size_t>(to.find_input(link.input));
  ASSERT_EQ(linked_from.output(output).data, linked_to.input(input).data) << "a link is one buffer";
  std::vector<bool> filled_by_link(to.input_count(), false);
  filled_by_link[input] = true;
  for (int round = 0; round < rounds; ++round) {
    const auto seed = static_cast<std::uint32_t>(round);
    const Outputs produced = run(from, seed);
    EXPECT_EQ(run(linked_from, seed), produced);
    // Others may run in between: a link keeps its contents.
    run(*linked.fleet->find("keyword"), seed);
    std::ranges::copy(produced[output], to.input(input).as<std::byte>());
    EXPECT_EQ(run(linked_to, seed, filled_by_link), run(to, seed, filled_by_link)) << "round " << round;
    const auto* kept = linked_from.output(output).as<std::byte>();
    EXPECT_TRUE(std::ranges::equal(produced[output], std::span(kept, produced[output].size())))
        << "the consumer overwrote what the link carries";
  }
}

TEST(BundledFleet, LinksCarryOutputsWithoutACopy) {
  const FleetSpec spec = bundled_fleet();
  auto placed = place_fleet(spec);
  ASSERT_TRUE(placed);
  expect_close_to_largest_member(*placed);
  for (const LinkSpec& link : spec.links) {
    SCOPED_TRACE(link.from_session + " -> " + link.to_session);
    expect_link_carries(*placed, link, 4);
  }
}

TEST(BundledFleet, SessionsOfOneModelShareItsWeightsButNotItsState) {
  const auto models = bundled_models();
  const ModelSpec voice = std::ranges::find(models, "voice-activity", &TestModel::name)->spec();
  auto one = place_fleet({.models = {voice}});
  auto three = place_fleet({.models = {voice}, .sessions = {{"a", voice.name}, {"b", voice.name}, {"c", voice.name}}});
  ASSERT_TRUE(one);
  ASSERT_TRUE(three);
  EXPECT_EQ(three->need().weights_bytes, one->need().weights_bytes);
  EXPECT_EQ(three->need().activation_bytes, one->need().activation_bytes);
  EXPECT_EQ(three->need().state_bytes, 3 * one->need().state_bytes);
  // Three streams, interleaved: each goes on from its own state.
  std::vector<std::vector<Outputs>> expected;
  for (std::uint32_t stream = 0; stream < 3; ++stream) {
    one->fleet->session(0)->reset();
    auto& said = expected.emplace_back();
    for (std::uint32_t round = 0; round < 4; ++round)
      said.push_back(run(*one->fleet->session(0), 100 * stream + round));
  }
  for (std::uint32_t round = 0; round < 4; ++round)
    for (std::uint32_t stream = 0; stream < 3; ++stream)
      EXPECT_EQ(run(*three->fleet->session(stream), 100 * stream + round), expected[stream][round])
          << "stream " << stream << ", round " << round;
}

TEST(BundledFleet, OfAFileEqualsTheOneCompiledInMemory) {
  const FleetSpec spec = bundled_fleet();
  auto compiled = OpenFleet::compile(spec);
  ASSERT_TRUE(compiled) << compiled.error().message;
  const io::testing::TemporaryFolder folder;
  const std::string path = folder.file("fleet.bantam");
  const auto bytes = compiled->compiled()->package();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  auto loaded = OpenFleet::load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_EQ(loaded->size(), compiled->size());
  EXPECT_EQ(loaded->requirements().arena_bytes, compiled->requirements().arena_bytes);
  EXPECT_EQ(loaded->compiled(), nullptr);
  for (int round = 0; round < 3; ++round)
    for (std::size_t i = 0; i < loaded->size(); ++i)
      EXPECT_EQ(run(loaded->session(i), static_cast<std::uint32_t>(round)),
                run(compiled->session(i), static_cast<std::uint32_t>(round)))
          << compiled->session(i).name();
}

TEST(BundledFleet, ResultsDoNotDependOnTheNumberOfThreads) {
  const FleetSpec spec = unlinked(quick_models());
  auto one = place_fleet(spec);
  auto two = place_fleet(spec, {.threads = 2});
  ASSERT_TRUE(one);
  ASSERT_TRUE(two);
  for (std::uint32_t round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < one->fleet->size(); ++i)
      EXPECT_EQ(run(*one->fleet->session(i), round), run(*two->fleet->session(i), round))
          << one->fleet->session(i)->name();
}

TEST(BundledFleet, BoundPortsAreUsedWhereTheyLie) {
  const auto models = bundled_models();
  const ModelSpec keyword = std::ranges::find(models, "keyword", &TestModel::name)->spec();
  auto placed = place_fleet({.models = {keyword}});
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  const Outputs expected = run(session, 3);
  ops::testing::GuardedMemory input(session.input_info(0).bytes, 4);
  ops::testing::GuardedMemory output(session.output_info(0).bytes, 4);
  ASSERT_TRUE(session.bind_input(0, input.data(), input.size()).ok());
  ASSERT_TRUE(session.bind_output(0, output.data(), output.size()).ok());
  EXPECT_EQ(run(session, 3), expected);
  EXPECT_EQ(session.output(0).data, output.data());
  EXPECT_TRUE(input.intact());
  EXPECT_TRUE(output.intact());
  EXPECT_EQ(session.bind_input(0, input.data(), input.size() - 1).code, StatusCode::kInvalidArgument);
  EXPECT_EQ(session.bind_input(0, input.data() + 1, input.size()).code, StatusCode::kMisaligned);
  EXPECT_EQ(session.bind_output(1, output.data(), output.size()).code, StatusCode::kNotFound);
}

}  // namespace
}  // namespace bantam::testing
