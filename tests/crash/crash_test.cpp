// The speech box that crashed: wake word, noise suppression, voice activity and recogniser in one process, created and
// destroyed in every order, each in exactly the memory that was promised, over and over.
//
// Systems that these tests stand in for broke when a second component was created, when one was destroyed before
// another, or after some hundred rounds, because memory was shared, kept or counted wrongly. Here every component must
// say in any company what it says alone, must be refused in one byte less before anything is written, and must leave
// nothing behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "bantam/open_fleet.h"
#include "base/testing/sanitizers.h"
#include "compiler/testing/placed_fleet.h"
#include "diagnose/allocations/allocation_counter.h"
#include "io/file.h"
#include "io/testing/temporary_folder.h"
#include "support/models.h"

namespace bantam::testing {
namespace {

using compiler::testing::place_fleet;
using compiler::testing::run;
using ops::testing::GuardedMemory;
using ops::testing::kCanary;

constexpr std::size_t kComponents = 4;
using Order = std::array<std::size_t, kComponents>;
using Outputs = std::vector<std::vector<std::byte>>;

/// All 24.
std::vector<Order> all_orders() {
  Order order;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<Order> orders;
  do orders.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  return orders;
}

std::string describe(const Order& order) {
  std::string text;
  for (const std::size_t i : order) text += std::to_string(i);
  return text;
}

/// The four components of a speech box.
struct Box {
  std::string name;
  std::array<ModelSpec, kComponents> models;
};

void PrintTo(const Box& box, std::ostream* out) { *out << box.name; }  // NOLINT: GoogleTest's name

ModelSpec bundled(const std::string& name) {
  const auto models = bundled_models();
  return std::ranges::find(models, name, &TestModel::name)->spec();
}

/// What the encoders of both recognisers carry from chunk to chunk.
std::vector<std::pair<std::string, std::string>> encoder_caches() {
  return {{"att_cache", "r_att_cache"}, {"cnn_cache", "r_cnn_cache"}};
}

Box bundled_box() {
  ModelSpec recogniser = bundled("recogniser-encoder");
  recogniser.states = encoder_caches();
  return {"Bundled", {bundled("keyword"), bundled("denoise"), bundled("voice-activity"), recogniser}};
}

/// Published models of the same four jobs.
Box published_box() {
  const auto folder = shared_folder();
  const double cache_frames = 64;
  return {"Published",
          {ModelSpec{.name = "okay-nabu", .path = folder / "mww-okay-nabu-int8.tflite"},
           ModelSpec{.name = "gtcrn",
                     .path = folder / "gtcrn-stream.onnx",
                     .states = {{"conv_cache", "conv_cache_out"},
                                {"tra_cache", "tra_cache_out"},
                                {"inter_cache", "inter_cache_out"}}},
           ModelSpec{.name = "silero",
                     .path = folder / "silero-vad.onnx",
                     .shapes = {{"input", {1, 576}}, {"state", {2, 1, 128}}},
                     .values = {{"sr", {16000}}},
                     .states = {{"state", "stateN"}}},
           ModelSpec{.name = "wenet",
                     .path = folder / "wenet-tiny" / "encoder.onnx",
                     .shapes = {{"chunk", {1, 67, 80}},
                                {"att_cache", {4, 4, 64, 40}},
                                {"cnn_cache", {4, 1, 80, 7}},
                                {"att_mask", {1, 1, 80}}},
                     .values = {{"offset", {cache_frames}}, {"required_cache_size", {cache_frames}}},
                     .states = encoder_caches()}}};
}

std::vector<Box> boxes() {
  std::vector<Box> all = {bundled_box()};
  if (have_shared_models()) all.push_back(published_box());
  return all;
}

/// More than any component is invoked between its creation and its destruction.
constexpr std::uint32_t kMostInvokes = 12;

/// Data of invoke `n` of a component: every component has its own.
std::uint32_t seed_of(std::size_t component, std::uint32_t n) {
  return 1000 * static_cast<std::uint32_t>(component + 1) + n;
}

/// The components compiled one by one, and what each says alone.
struct Alone {
  std::array<std::optional<Compiled>, kComponents> compiled;
  std::array<std::vector<Outputs>, kComponents> said;
};

std::optional<Alone> compile_alone(const Box& box) {
  Alone alone;
  for (std::size_t i = 0; i < kComponents; ++i) {
    auto placed = place_fleet({.models = {box.models[i]}});
    if (!placed) return std::nullopt;
    for (std::uint32_t n = 0; n < kMostInvokes; ++n)
      alone.said[i].push_back(run(*placed->fleet->session(0), seed_of(i, n)));
    EXPECT_NE(alone.said[i][0], alone.said[i][1]) << box.models[i].name << " says the same whatever it is given";
    alone.compiled[i] = std::move(placed->compiled);
  }
  return alone;
}

bool untouched(std::span<const std::byte> bytes) {
  // Equal to itself shifted by one, and its first byte is a canary.
  return bytes.empty() || (bytes[0] == kCanary && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

/// Places in exactly the promised bytes, between canaries and guard pages, after one byte less was refused.
Fleet* place_exactly(const Package& package, const GuardedMemory& arena) {
  Fleet* fleet = nullptr;
  const Status refused = Fleet::place(package, arena.bytes().first(arena.size() - 1), &fleet);
  EXPECT_EQ(refused.code, StatusCode::kArenaTooSmall);
  EXPECT_EQ(refused.found, static_cast<std::int64_t>(arena.size()) - 1);
  EXPECT_EQ(refused.expected, static_cast<std::int64_t>(arena.size()));
  const std::string reason = error_from(refused).message;
  EXPECT_NE(reason.find(std::to_string(arena.size())), std::string::npos) << reason;
  EXPECT_EQ(fleet, nullptr);
  EXPECT_TRUE(untouched(arena.bytes())) << "a refused placement wrote into the arena";
  const Status placed = Fleet::place(package, arena.bytes(), &fleet);
  EXPECT_TRUE(placed.ok()) << placed.message;
  return fleet;
}

GuardedMemory arena_for(const Package& package) {
  const Requirements need = package.requirements();
  return {static_cast<std::size_t>(need.arena_bytes), static_cast<std::size_t>(need.alignment)};
}

/// A component in an arena of its own.
class Guarded {
 public:
  static std::optional<Guarded> create(const Compiled& compiled) {
    Guarded result;
    if (!Package::open(compiled.package(), &result.package_).ok()) return std::nullopt;
    result.arena_ = arena_for(result.package_);
    result.fleet_ = place_exactly(result.package_, result.arena_);
    if (result.fleet_ == nullptr) return std::nullopt;
    return result;
  }
  Session& session() { return *fleet_->session(0); }
  bool intact() const { return arena_.intact(); }

 private:
  Package package_;
  GuardedMemory arena_;
  Fleet* fleet_ = nullptr;
};

/// A component as an application holds it.
class Opened {
 public:
  static std::optional<Opened> create(const std::string& package) {
    auto fleet = OpenFleet::load(package);
    if (!fleet) return std::nullopt;
    EXPECT_EQ(fleet->arena().size(), fleet->requirements().arena_bytes);
    return Opened(std::move(*fleet));
  }
  Session& session() { return fleet_.session(0); }
  static bool intact() { return true; }

 private:
  explicit Opened(OpenFleet fleet) : fleet_(std::move(fleet)) {}
  OpenFleet fleet_;
};

/// Creates all four in one order and destroys them in another; whoever lives is invoked in between.
template <typename Component, typename Source>
void live_and_die(const std::array<Source, kComponents>& sources, const Alone& alone, const Order& create,
                  const Order& destroy) {
  std::array<std::optional<Component>, kComponents> box;
  std::array<std::uint32_t, kComponents> invokes{};
  const auto invoke = [&](std::size_t i) {
    const std::uint32_t n = invokes[i]++;
    EXPECT_TRUE(run(box[i]->session(), seed_of(i, n)) == alone.said[i].at(n))
        << "component " << i << ", invoke " << n << ", created " << describe(create) << ", destroyed "
        << describe(destroy);
  };
  for (const std::size_t i : create) {
    box[i] = Component::create(sources[i]);
    ASSERT_TRUE(box[i]) << "component " << i << " cannot be created, order " << describe(create);
    invoke(i);
  }
  for (const std::size_t i : destroy) invoke(i);
  for (std::size_t gone = 0; gone < kComponents; ++gone) {
    EXPECT_TRUE(box[destroy[gone]]->intact()) << "something wrote outside the arena of component " << destroy[gone];
    box[destroy[gone]].reset();
    if (gone + 1 < kComponents) invoke(destroy[gone + 1]);
  }
}

/// All 576 pairs of orders, grouped by the first; in a sanitized build six pairs of twelve different orders.
std::vector<std::pair<Order, Order>> pairs_of_orders() {
  const std::vector<Order> orders = all_orders();
  std::vector<std::pair<Order, Order>> pairs;
  for (std::size_t i = 0; i < orders.size(); i += kSanitized ? 4 : 1)
    for (std::size_t k = 0; k < (kSanitized ? 1 : orders.size()); ++k)
      pairs.emplace_back(orders[i], orders[(7 * i + 11 + k) % orders.size()]);
  return pairs;
}

/// Calls round(create, destroy) with the pairs of orders and expects that no byte stays allocated.
template <typename Round>
void in_all_orders(Round round) {
  round(all_orders().front(), all_orders().back());
  const std::int64_t before = diagnose::live_bytes();
  for (const auto& [create, destroy] : pairs_of_orders()) {
    round(create, destroy);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(diagnose::live_bytes(), before) << "bytes stay allocated after all rounds";
}

class SpeechBox : public ::testing::TestWithParam<Box> {};

TEST_P(SpeechBox, OfFourArenasLivesInEveryOrder) {
  const auto alone = compile_alone(GetParam());
  ASSERT_TRUE(alone);
  std::array<Compiled, kComponents> sources;
  for (std::size_t i = 0; i < kComponents; ++i) sources[i] = *alone->compiled[i];
  in_all_orders(
      [&](const Order& create, const Order& destroy) { live_and_die<Guarded>(sources, *alone, create, destroy); });
}

TEST_P(SpeechBox, OfFourFilesLivesInEveryOrder) {
  const auto alone = compile_alone(GetParam());
  ASSERT_TRUE(alone);
  const io::testing::TemporaryFolder folder;
  std::array<std::string, kComponents> files;
  for (std::size_t i = 0; i < kComponents; ++i) {
    files[i] = folder.file(std::to_string(i) + ".bantam");
    ASSERT_TRUE(io::write_file(files[i], alone->compiled[i]->package()));
  }
  in_all_orders(
      [&](const Order& create, const Order& destroy) { live_and_die<Opened>(files, *alone, create, destroy); });
}

/// The four in one arena, in the order `create`, invoked in the order `use` twice.
void live_in_one_arena(const Compiled& compiled, const Alone& alone, const Order& create, const Order& use) {
  Package package;
  ASSERT_TRUE(Package::open(compiled.package(), &package).ok());
  const GuardedMemory arena = arena_for(package);
  Fleet* fleet = place_exactly(package, arena);
  ASSERT_NE(fleet, nullptr);
  for (std::uint32_t n = 0; n < 2; ++n)
    for (const std::size_t at : use) {
      const std::size_t i = create[at];
      EXPECT_TRUE(run(*fleet->session(at), seed_of(i, n)) == alone.said[i].at(n))
          << "component " << i << ", invoke " << n << ", created " << describe(create) << ", used " << describe(use);
    }
  EXPECT_TRUE(arena.intact());
}

/// Does the order only begin elsewhere than all_orders' first?
bool is_rotation(const Order& order) {
  for (std::size_t i = 0; i < kComponents; ++i)
    if (order[i] != (order[0] + i) % kComponents) return false;
  return true;
}

/// What lives in one arena is created at once, so only its list has an order: each component is compiled at every
/// place.
TEST_P(SpeechBox, OfOneArenaIsUsedInEveryOrder) {
  const auto alone = compile_alone(GetParam());
  ASSERT_TRUE(alone);
  std::optional<Compiled> compiled;
  Order compiled_for{};
  const auto round = [&](const Order& create, const Order& use) {
    if (!compiled || compiled_for != create) {
      compiled.reset();
      FleetSpec spec;
      for (const std::size_t i : create) spec.models.push_back(GetParam().models[i]);
      auto result = compile(spec);
      ASSERT_TRUE(result) << result.error().message;
      compiled = std::move(*result);
      compiled_for = create;
    }
    live_in_one_arena(*compiled, *alone, create, use);
  };
  round(all_orders().front(), all_orders().front());
  compiled.reset();
  const std::int64_t before = diagnose::live_bytes();
  for (const auto& [create, use] : pairs_of_orders()) {
    if (!is_rotation(create)) continue;
    round(create, use);
    if (HasFailure()) return;
  }
  compiled.reset();
  EXPECT_EQ(diagnose::live_bytes(), before) << "bytes stay allocated after all rounds";
}

INSTANTIATE_TEST_SUITE_P(Boxes, SpeechBox, ::testing::ValuesIn(boxes()),
                         [](const auto& box) { return box.param.name; });

TEST(PublishedSpeechBox, IsPresent) {
  if (!have_shared_models()) GTEST_SKIP() << kNoSharedModels;
}

}  // namespace
}  // namespace bantam::testing
