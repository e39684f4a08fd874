// Memory is a promise: what the plan says is what a run touches, to the byte, and nothing is allocated after placing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "bantam/open_fleet.h"
#include "compiler/testing/placed_fleet.h"
#include "package/layout.h"
#include "support/models.h"

namespace bantam::testing {
namespace {

using compiler::testing::fill_inputs;
using compiler::testing::place_fleet;
using compiler::testing::PlacedFleet;
using ops::testing::kCanary;

FleetSpec fleet_of(const TestModel& model) { return {.models = {model.spec()}}; }

void invoke_all(PlacedFleet& placed, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < placed.fleet->size(); ++i) {
      fill_inputs(*placed.fleet->session(i), static_cast<std::uint32_t>(round));
      const Status status = placed.fleet->session(i)->invoke();
      ASSERT_TRUE(status.ok()) << placed.fleet->session(i)->name() << ": " << status.message;
    }
  }
}

/// A stretch of the arena that the layout gives to something.
struct Region {
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;
};

/// All regions of a fleet's arena, as the layout computes them.
std::vector<Region> regions(const Package& package) {
  const format::Package& meta = *package.meta();
  const SharedNeeds shared = SharedNeeds::of(meta);
  ArenaLayout layout(shared, sizeof(void*));
  std::vector<Region> result = {{layout.activations[0], shared.activation_bytes[0]},
                                {layout.links, shared.link_bytes},
                                {layout.fleet, sizeof(Fleet)},
                                {layout.session_table, package.session_count() * sizeof(void*)},
                                {layout.kernel_table, meta.kernels()->size() * sizeof(void*)}};
  for (std::size_t i = 0; i < package.session_count(); ++i) {
    const format::Model& model = *meta.models()->Get(static_cast<std::uint32_t>(package.session_model(i)));
    const auto place = layout.add(model, 0);
    result.push_back({place.state, model.state_bytes()});
    for (const std::uint64_t copy : place.swap) result.push_back({copy, model.swap_bytes()});
    result.push_back({place.session, sizeof(Session)});
    result.push_back({place.bases, (format::kFirstPort + format::port_count(model)) * sizeof(void*)});
  }
  std::erase_if(result, [](const Region& r) { return r.bytes == 0; });
  std::ranges::sort(result, {}, &Region::first);
  return result;
}

void expect_promise_kept(const FleetSpec& spec, const CompileOptions& options) {
  auto placed = place_fleet(spec, options);
  ASSERT_TRUE(placed);
  const Requirements need = placed->need();
  EXPECT_EQ(placed->compiled->requirements().arena_bytes, need.arena_bytes);
  invoke_all(*placed, 3);
  for (std::size_t i = 0; i < placed->fleet->size(); ++i) placed->fleet->session(i)->reset();
  invoke_all(*placed, 1);
  EXPECT_TRUE(placed->arena.intact()) << "something wrote outside the arena";

  // Between the regions lie only the few bytes that alignment leaves, and nothing ever touches them.
  std::uint64_t end = 0;
  std::uint64_t gaps = 0;
  for (const Region& region : regions(placed->package)) {
    ASSERT_GE(region.first, end) << "regions overlap";
    for (std::uint64_t at = end; at < region.first; ++at)
      ASSERT_EQ(placed->bytes()[static_cast<std::size_t>(at)], kCanary) << "the gap at byte " << at << " was written";
    ASSERT_LT(region.first - end, need.alignment);
    gaps += region.first - end;
    end = region.first + region.bytes;
  }
  EXPECT_EQ(end, need.arena_bytes) << "the promise is not the end of the last region";
  EXPECT_EQ(need.arena_bytes - gaps, need.activation_bytes + need.state_bytes + need.link_bytes + need.table_bytes);
}

/// Bytes that only scratch has at the end of the activations. Scratch is what the neediest instruction set's kernels
/// work in, so that a package serves all; this processor's may leave some of it.
std::uint64_t scratch_at_end(const Compiled& compiled, std::uint64_t activation_bytes) {
  std::uint64_t scratch = 0;
  for (const ModelReport& model : compiled.models())
    for (const PlanBlock& block : model.blocks)
      if (block.kind == PlanBlock::Kind::kScratch &&
          static_cast<std::uint64_t>(block.offset + block.bytes) + format::kArenaAlignment > activation_bytes)
        scratch = std::max(scratch, static_cast<std::uint64_t>(block.bytes));
  return scratch;
}

/// Which bytes a run touches, seen by running in two arenas filled differently: whatever was written is equal in both.
void expect_all_of_it_used(const FleetSpec& spec) {
  constexpr std::byte kOther{0x5c};
  auto first = place_fleet(spec);
  auto second = place_fleet(spec, {}, kOther);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  invoke_all(*first, 1);
  invoke_all(*second, 1);
  const auto a = first->bytes();
  const auto b = second->bytes();
  std::size_t last = 0;
  std::size_t last_activation = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == kCanary && b[i] == kOther) continue;
    last = i;
    if (i < first->need().activation_bytes) last_activation = i;
  }
  EXPECT_EQ(last + 1, first->need().arena_bytes) << "the plan asks for bytes at the end that nothing uses";
  // A row or a tail of scratch may stay untouched, such as the padding of a vector.
  EXPECT_LE(first->need().activation_bytes - last_activation,
            format::kArenaAlignment + scratch_at_end(*first->compiled, first->need().activation_bytes));
}

class ModelMemory : public ::testing::TestWithParam<TestModel> {};

TEST_P(ModelMemory, RunsWithinExactlyThePromisedBytes) { expect_promise_kept(fleet_of(GetParam()), {}); }

TEST_P(ModelMemory, RunsWithinThePromisedBytesWithTwoThreads) {
  expect_promise_kept(fleet_of(GetParam()), {.threads = 2});
}

TEST_P(ModelMemory, UsesAllThatItAsksFor) { expect_all_of_it_used(fleet_of(GetParam())); }

TEST_P(ModelMemory, PlacesInNothingSmallerThanPromised) {
  const auto compiled = compile(fleet_of(GetParam()));
  ASSERT_TRUE(compiled) << compiled.error().message;
  Package package;
  ASSERT_TRUE(Package::open(compiled->package(), &package).ok());
  const Requirements need = package.requirements();
  const auto promised = static_cast<std::size_t>(need.arena_bytes);
  const ops::testing::GuardedMemory arena(promised, static_cast<std::size_t>(need.alignment));
  Fleet* fleet = nullptr;
  const auto starve = [&](std::size_t bytes) {
    const Status status = Fleet::place(package, arena.bytes().first(bytes), &fleet);
    ASSERT_EQ(status.code, StatusCode::kArenaTooSmall) << bytes << " of " << promised;
    ASSERT_EQ(status.found, static_cast<std::int64_t>(bytes));
    ASSERT_EQ(status.expected, static_cast<std::int64_t>(promised));
    ASSERT_EQ(fleet, nullptr);
  };
  const std::size_t near = promised - std::min<std::size_t>(promised, 300);
  for (std::size_t bytes = 0; bytes < near; bytes += promised / 97 + 1) starve(bytes);
  for (std::size_t bytes = near; bytes < promised; ++bytes) starve(bytes);
  EXPECT_TRUE(std::ranges::all_of(arena.bytes(), [](std::byte b) { return b == kCanary; }))
      << "a failed placement wrote into the arena";
  ASSERT_TRUE(Fleet::place(package, arena.bytes(), &fleet).ok());
  ASSERT_NE(fleet, nullptr);
  fill_inputs(*fleet->session(0), 1);
  EXPECT_TRUE(fleet->session(0)->invoke().ok());
}

TEST_P(ModelMemory, RefusesEveryMisalignedArena) {
  const auto compiled = compile(fleet_of(GetParam()));
  ASSERT_TRUE(compiled) << compiled.error().message;
  Package package;
  ASSERT_TRUE(Package::open(compiled->package(), &package).ok());
  const Requirements need = package.requirements();
  const ops::testing::GuardedMemory arena(static_cast<std::size_t>(need.arena_bytes + need.alignment),
                                          static_cast<std::size_t>(need.alignment));
  for (std::size_t shift = 1; shift < need.alignment; ++shift) {
    Fleet* fleet = nullptr;
    const Status status = Fleet::place(package, arena.bytes().subspan(shift), &fleet);
    ASSERT_EQ(status.code, StatusCode::kMisaligned) << shift;
    ASSERT_EQ(status.expected, static_cast<std::int64_t>(need.alignment));
  }
  EXPECT_TRUE(std::ranges::all_of(arena.bytes(), [](std::byte b) { return b == kCanary; }));
}

INSTANTIATE_TEST_SUITE_P(Bundled, ModelMemory, ::testing::ValuesIn(quick_models()), test_name);
INSTANTIATE_TEST_SUITE_P(Shared, ModelMemory, ::testing::ValuesIn(sampled(shared_models())), test_name);

TEST(FleetMemory, RunsWithinExactlyThePromisedBytes) { expect_promise_kept(bundled_fleet(), {}); }

TEST(FleetMemory, UsesAllThatItAsksFor) { expect_all_of_it_used(bundled_fleet()); }

TEST(FleetMemory, LeavesTheStateOfOtherSessionsAlone) {
  auto placed = place_fleet(bundled_fleet());
  ASSERT_TRUE(placed);
  const Requirements need = placed->need();
  invoke_all(*placed, 2);
  // Behind activations and links lies what belongs to one session each, in the order of the sessions.
  const auto shared = static_cast<std::size_t>(align_up(static_cast<std::int64_t>(need.activation_bytes), 64) +
                                               static_cast<std::int64_t>(need.link_bytes));
  for (std::size_t i = 0; i < placed->fleet->size(); ++i) {
    std::vector<std::byte> before(placed->bytes().begin() + static_cast<std::ptrdiff_t>(shared), placed->bytes().end());
    fill_inputs(*placed->fleet->session(i), 7);
    ASSERT_TRUE(placed->fleet->session(i)->invoke().ok());
    const format::Model& model = placed->fleet->session(i)->model();
    std::size_t changed = 0;
    for (std::size_t at = 0; at < before.size(); ++at) changed += before[at] != placed->bytes()[shared + at] ? 1 : 0;
    // Its state, and two base addresses when a state alternates.
    EXPECT_LE(changed, model.state_bytes() + model.swap_bytes() + 2 * sizeof(void*))
        << placed->fleet->session(i)->name();
  }
}

TEST(SharedModels, ArePresent) {
  if (!have_shared_models()) GTEST_SKIP() << kNoSharedModels;
}

}  // namespace
}  // namespace bantam::testing
