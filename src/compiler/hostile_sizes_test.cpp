// Packages whose dimensions and patches say anything: a resize gives an error or something that stays within its
// memory.
#include <gtest/gtest.h>

#include <random>

#include "compiler/emit.h"
#include "compiler/legalize.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "ops/testing/guarded_memory.h"
#include "package/size_patches.h"

namespace bantam::compiler {
namespace {

using ops::testing::GuardedMemory;

graph::Graph graph_at(std::int64_t size) {
  const std::string t = std::to_string(size);
  return testing::parse(R"(graph "sized" {
    %x "x" = input : f32[1,)" +
                        t + R"(,8]
    %past "past" = input : f32[1,5,8]
    %w = const : f32[8,8] splat(0.25)
    %c = concat(%past, %x) {axis=1}
    %m = matmul(%c, %w)
    %r = reshape(%m) {shape=[)" +
                        std::to_string(size + 5) + R"(,2,4]}
    %p = transpose(%r) {perm=[1,0,2]}
    %last = slice(%c) {starts=[0,)" +
                        t + R"(,0], steps=[1,1,1], sizes=[1,5,8]}
    %e = unary(%last) {function="exp"}
    output "heads" %p
    output "next" %e
  })");
}

/// A good package that runs at sizes 0 to 16.
format::PackageData good_package() {
  const auto sized = size_model(
      {{"T", 16}}, [](const Sizes& sizes) -> Result<graph::Graph> { return graph_at(sizes[0]); },
      [](graph::Graph& graph, bool) { return legalize(graph); });
  EXPECT_TRUE(sized) << sized.error().message;
  PlanOptions options;
  options.dimensions = sized->dimensions;
  options.instances = sized->instances;
  const auto planned = plan_model(sized->instances.front().graph, options);
  EXPECT_TRUE(planned) << planned.error().message;
  format::PackageData data;
  EXPECT_TRUE(emit_model(*planned, "sized", data));
  data.fleet.emplace_back("sized", std::uint16_t{0});
  return data;
}

/// Resizes a session up and down, whatever comes of it, and runs it where that succeeds.
void resize_and_run(Session& session, std::mt19937& random) {
  for (int round = 0; round < 6; ++round) {
    const auto bound = static_cast<std::uint32_t>(session.dim_bound(0));
    const Status set = session.set_dim("T", static_cast<std::int64_t>(random() % (bound + 2)));
    if (!set.ok()) continue;
    testing::fill_inputs(session, static_cast<std::uint32_t>(round));
    static_cast<void>(session.invoke());
  }
  // After errors too the session runs at the sizes that it has.
  testing::fill_inputs(session, 1);
  static_cast<void>(session.invoke());
}

/// True when the package was opened; then it has run in guarded memory, its ports included.
bool survives(const format::PackageData& data, std::mt19937& random) {
  const format::PackageBytes bytes = format::write_package(data);
  Package package;
  if (!Package::open(bytes.bytes(), &package).ok()) return false;
  const Requirements need = package.requirements();
  const GuardedMemory arena(static_cast<std::size_t>(need.arena_bytes), static_cast<std::size_t>(need.alignment));
  Fleet* fleet = nullptr;
  EXPECT_TRUE(Fleet::place(package, arena.bytes(), &fleet).ok());
  Session& session = *fleet->session(0);
  std::vector<GuardedMemory> ports;
  for (std::size_t i = 0; i < session.input_count(); ++i) {
    ports.emplace_back(static_cast<std::size_t>(session.input_info(i).bytes), 4);
    EXPECT_TRUE(session.bind_input(i, ports.back().data(), ports.back().size()).ok());
  }
  for (std::size_t o = 0; o < session.output_count(); ++o) {
    ports.emplace_back(static_cast<std::size_t>(session.output_info(o).bytes), 4);
    EXPECT_TRUE(session.bind_output(o, ports.back().data(), ports.back().size()).ok());
  }
  if (session.dim_count() != 0) resize_and_run(session, random);
  EXPECT_TRUE(arena.intact());
  for (const GuardedMemory& port : ports) EXPECT_TRUE(port.intact());
  return true;
}

format::SizePatch damaged(const format::SizePatch& patch, std::mt19937& random) {
  const auto small = [&](std::int32_t from) { return from + static_cast<std::int32_t>(random() % 9) - 4; };
  const auto any = [&](std::int32_t from) {
    return random() % 4 == 0 ? static_cast<std::int32_t>(random()) : small(from);
  };
  format::SizePatch p = patch;
  std::uint32_t index = p.index();
  std::int32_t base = p.base();
  std::int32_t scale = p.scale();
  std::uint16_t divisor = p.divisor();
  std::uint8_t field = p.field();
  std::uint8_t dims = p.dims();
  switch (random() % 6) {
    case 0: index = static_cast<std::uint32_t>(any(static_cast<std::int32_t>(index))); break;
    case 1: base = any(base); break;
    case 2: scale = any(scale); break;
    case 3: divisor = static_cast<std::uint16_t>(random() % 4); break;
    case 4: field = static_cast<std::uint8_t>(random() % (format::kSizeFieldCount + 1)); break;
    default: dims = static_cast<std::uint8_t>(random()); break;
  }
  return {index, base, scale, divisor, field, dims};
}

TEST(HostileSizes, StayWithinTheirMemory) {
  const format::PackageData good = good_package();
  ASSERT_FALSE(good.models[0].patches.empty());
  std::mt19937 random(11);
  EXPECT_TRUE(survives(good, random));
  int opened = 0;
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE("round " + std::to_string(i));
    format::PackageData data = good;
    auto& patches = data.models[0].patches;
    for (auto count = 1 + random() % 3; count > 0; --count) {
      format::SizePatch& patch = patches[random() % patches.size()];
      patch = damaged(patch, random);
    }
    if (random() % 8 == 0) data.models[0].dimensions[0].bound = static_cast<std::int32_t>(random() % 64);
    opened += survives(data, random) ? 1 : 0;
    if (HasFailure()) return;
  }
  // Most of these are nonsense only once somebody asks for another size.
  EXPECT_GT(opened, 1000);
}

TEST(HostileSizes, RefuseDimensionsThatContradictThemselves) {
  const format::PackageData good = good_package();
  std::mt19937 random(1);
  const auto refuses = [&](auto change) {
    format::PackageData data = good;
    change(data.models[0]);
    return !survives(data, random);
  };
  EXPECT_TRUE(refuses([](format::ModelData& m) { m.dimensions[0].bound = 0; }));
  EXPECT_TRUE(refuses([](format::ModelData& m) { m.dimensions[0].least = -1; }));
  EXPECT_TRUE(refuses([](format::ModelData& m) { m.dimensions[0].least = 17; }));
  EXPECT_TRUE(refuses([](format::ModelData& m) { m.dimensions.resize(16, m.dimensions[0]); }));
  EXPECT_TRUE(refuses([](format::ModelData& m) { m.patches[0] = {0, 1, 1, 0, 0, 1}; }));
  EXPECT_TRUE(refuses([](format::ModelData& m) { m.patches[0] = {0, 1, 1, 1, 0, 2}; }));
  EXPECT_TRUE(refuses([](format::ModelData& m) { m.patches[0] = {0, 1, 1, 1, format::kSizeFieldCount, 1}; }));
  EXPECT_TRUE(refuses(
      [](format::ModelData& m) { m.patches[0] = {static_cast<std::uint32_t>(m.values.size()), 1, 1, 1, 0, 1}; }));
  EXPECT_TRUE(refuses([](format::ModelData& m) {
    m.patches[0] = {static_cast<std::uint32_t>(m.params.size()), 1, 1, 1, format::kParamField, 1};
  }));
}

}  // namespace
}  // namespace bantam::compiler
