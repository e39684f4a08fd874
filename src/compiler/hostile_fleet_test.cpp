// Forged lanes and tiers: what a package says about them is refused, or stays within its memory.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "base/hash.h"
#include "compiler/emit.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"

namespace bantam::compiler {
namespace {

using format::PackageData;

constexpr const char* kLinkedModel = R"(graph "m" {
  %x "x" = input : f32[1,8]
  %h "h" = state : f32[1,8] splat(0.5)
  %w = const : f32[8,8] splat(0.25)
  %b = const : f32[8] {1, 2, 3, 4, 5, 6, 7, 8}
  %m = matmul(%x, %w, %b)
  %n = binary(%m, %h)
  %k = softmax(%n)
  output "y" %k
  next "h" %n
})";

class HostileFleet : public ::testing::Test {
 protected:
  /// Three sessions in two lanes, in two tiers; the second tier has one group's softmax, say.
  void SetUp() override {
    auto planned = plan_model(testing::parse(kLinkedModel), {});
    ASSERT_TRUE(planned) << planned.error().message;
    ASSERT_TRUE(emit_model(*planned, "m", data_));
    format::ModelData& model = data_.models.front();
    const std::uint64_t bytes = model.activation_bytes;
    // Everything that a port holds moves to the second tier.
    model.tier_bytes = {bytes};
    for (auto* ports : {&model.inputs, &model.outputs})
      for (format::PortData& port : *ports)
        if (port.default_slot == format::kActivations) port.default_slot = second_tier();
    model.scratch_tiers.assign(model.steps.size(), 1);
    data_.tiers = {{"fast", 4096, 1}, {"slow", 65536, 4}};
    data_.link_tier = 1;
    data_.lanes = {"a", "b"};
    data_.groups = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}};
    const std::uint64_t stride = (bytes + 63) / 64 * 64;
    for (std::uint64_t g = 0; g < 3; ++g)
      for (int tier = 0; tier < 2; ++tier) data_.areas.emplace_back(g * stride, bytes);
    for (std::uint16_t g = 0; g < 3; ++g) {
      data_.fleet.emplace_back("session " + std::to_string(g), std::uint16_t{0});
      data_.fleet.back().group = g;
      data_.fleet.back().state_tier = static_cast<std::uint8_t>(g % 2);
    }
  }

  std::uint32_t second_tier() const { return format::kFirstPort + 2; }

  static bool survives(std::span<const std::byte> bytes) {
    Package package;
    if (!Package::open(bytes, &package).ok()) return false;
    if (package.requirements().arena_bytes > (1U << 24)) return true;
    // A tier each, so that leaving one is seen.
    std::vector<ops::testing::GuardedMemory> memories;
    std::vector<std::span<std::byte>> arenas;
    for (std::size_t t = 0; t < package.tier_count(); ++t) {
      const Requirements need = package.tier_requirements(t);
      memories.emplace_back(static_cast<std::size_t>(need.arena_bytes), static_cast<std::size_t>(need.alignment));
      arenas.push_back(memories.back().bytes());
    }
    Fleet* fleet = nullptr;
    const Status placed = Fleet::place(package, arenas, &fleet);
    EXPECT_TRUE(placed.ok()) << placed.message;
    for (std::size_t i = 0; placed.ok() && i < fleet->size(); ++i) {
      Session& session = *fleet->session(i);
      bool bound = true;
      for (std::size_t p = 0; p < session.input_count(); ++p) bound = bound && session.input(p).data != nullptr;
      if (bound) testing::fill_inputs(session, 1);
      for (int round = 0; round < 2; ++round) static_cast<void>(session.invoke());
    }
    for (const auto& memory : memories) EXPECT_TRUE(memory.intact());
    return true;
  }

  PackageData data_;
};

TEST_F(HostileFleet, TheGoodOneRunsInAnArenaPerTierAndInOneForAll) {
  const format::PackageBytes bytes = format::write_package(data_);
  EXPECT_TRUE(survives(bytes.bytes()));
  auto one = testing::place_package(bytes.bytes());
  ASSERT_TRUE(one);
  EXPECT_EQ(one->package.tier_name(1), "slow");
  EXPECT_EQ(one->package.session_lane(2), "b");
  EXPECT_EQ(one->package.session_priority(1), 1);
  for (std::size_t i = 0; i < 3; ++i) testing::run(*one->fleet->session(i), 1);
  EXPECT_TRUE(one->arena.intact());
}

TEST_F(HostileFleet, StarvedTiersAreNamed) {
  const format::PackageBytes bytes = format::write_package(data_);
  Package package;
  ASSERT_TRUE(Package::open(bytes.bytes(), &package).ok());
  ops::testing::GuardedMemory fast(static_cast<std::size_t>(package.tier_requirements(0).arena_bytes), 64);
  ops::testing::GuardedMemory slow(static_cast<std::size_t>(package.tier_requirements(1).arena_bytes), 64);
  Fleet* fleet = nullptr;
  std::span<std::byte> arenas[] = {fast.bytes(), slow.bytes()};
  EXPECT_TRUE(Fleet::place(package, arenas, &fleet).ok());
  for (std::size_t t = 0; t < 2; ++t) {
    std::span<std::byte> starved[] = {fast.bytes(), slow.bytes()};
    starved[t] = starved[t].first(starved[t].size() - 1);
    const Status status = Fleet::place(package, starved, &fleet);
    EXPECT_EQ(status.code, StatusCode::kArenaTooSmall);
    EXPECT_EQ(status.index, static_cast<std::int32_t>(t));
    EXPECT_EQ(status.expected, static_cast<std::int64_t>(arenas[t].size()));
  }
  EXPECT_EQ(Fleet::place(package, std::span(arenas).first(1), &fleet).code, StatusCode::kInvalidArgument);
}

TEST_F(HostileFleet, WhatContradictsIsRefused) {
  struct Forgery {
    const char* what;
    std::function<void(PackageData&)> forge;
  };
  const auto area = [](PackageData& d, std::size_t i, std::uint64_t offset, std::uint64_t bytes) {
    d.areas[i] = {offset, bytes};
  };
  const std::uint64_t bytes = data_.models.front().activation_bytes;
  const Forgery forgeries[] = {
      {"areas overlap", [&](PackageData& d) { area(d, 2, 0, bytes); }},
      {"areas overlap in the second tier", [&](PackageData& d) { area(d, 3, 0, bytes); }},
      {"area too small", [&](PackageData& d) { area(d, 4, d.areas[4].offset(), bytes - 1); }},
      {"area misaligned", [&](PackageData& d) { area(d, 4, d.areas[4].offset() + 4, bytes); }},
      {"area beyond all memory", [&](PackageData& d) { area(d, 5, ~std::uint64_t{63}, bytes); }},
      {"area with forged bytes", [&](PackageData& d) { area(d, 5, d.areas[5].offset(), ~std::uint64_t{0}); }},
      {"an area is missing", [](PackageData& d) { d.areas.pop_back(); }},
      {"no areas", [](PackageData& d) { d.areas.clear(); }},
      {"no lanes", [](PackageData& d) { d.lanes.clear(); }},
      {"group without a lane",
       [](PackageData& d) {
         d.groups[1] = {0, 2, 0};
       }},
      {"session without a group", [](PackageData& d) { d.fleet[1].group = 3; }},
      {"session without groups", [](PackageData& d) { d.lanes.clear(), d.groups.clear(), d.areas.clear(); }},
      {"state in no tier", [](PackageData& d) { d.fleet[2].state_tier = 2; }},
      {"links in no tier", [](PackageData& d) { d.link_tier = 2; }},
      {"fewer tiers than the model has", [](PackageData& d) { d.tiers.clear(), d.link_tier = 0; }},
      {"five tiers",
       [](PackageData& d) {
         d.tiers.resize(5, {"more", 1, 1});
       }},
      {"five tiers of a model", [](PackageData& d) { d.models[0].tier_bytes.resize(4, 64); }},
      {"a tier beyond all memory", [](PackageData& d) { d.models[0].tier_bytes[0] = ~std::uint64_t{0}; }},
      {"a tier smaller than its values", [](PackageData& d) { d.models[0].tier_bytes[0] = 0; }},
      {"scratch in no tier", [](PackageData& d) { d.models[0].scratch_tiers[0] = 2; }},
      {"scratch tiers of other steps", [](PackageData& d) { d.models[0].scratch_tiers.pop_back(); }},
      {"port in no tier", [&](PackageData& d) { d.models[0].inputs[0].default_slot = second_tier() + 1; }},
      {"port in another port", [&](PackageData& d) { d.models[0].inputs[0].default_slot = format::kFirstPort; }},
      {"value in no tier",
       [&](PackageData& d) {
         for (format::Value& v : d.models[0].values)
           if (v.slot() == format::kActivations || v.slot() == format::kState)
             v = format::make_value(*format::desc_of(v), second_tier() + 1, v.offset(), v.bytes());
       }},
  };
  for (const Forgery& forgery : forgeries) {
    PackageData forged = data_;
    forgery.forge(forged);
    const format::PackageBytes package = format::write_package(forged);
    Package view;
    EXPECT_EQ(Package::open(package.bytes(), &view).code, StatusCode::kInvalidPackage) << forgery.what;
  }
}

TEST_F(HostileFleet, EveryFlippedBitBehindRightHashesStaysWithinMemory) {
  const format::PackageBytes good = format::write_package(data_);
  format::Header header;
  std::memcpy(&header, good.bytes().data(), sizeof header);
  int opened = 0;
  for (std::size_t at = sizeof header; at < sizeof header + header.meta_bytes; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      format::PackageBytes bytes(good.bytes().size());
      std::memcpy(bytes.data(), good.bytes().data(), good.bytes().size());
      bytes.data()[at] ^= static_cast<std::byte>(1 << bit);
      format::Header fixed = header;
      fixed.meta_hash = hash64(bytes.data() + sizeof header, static_cast<std::size_t>(header.meta_bytes));
      fixed.header_hash = hash64(&fixed, sizeof fixed - sizeof fixed.header_hash);
      std::memcpy(bytes.data(), &fixed, sizeof fixed);
      SCOPED_TRACE(::testing::Message() << "byte " << at << ", bit " << bit);
      opened += survives(bytes.bytes()) ? 1 : 0;
    }
  }
  EXPECT_GT(opened, 0) << "no flip was harmless: the test does not reach the runtime";
}

}  // namespace
}  // namespace bantam::compiler
