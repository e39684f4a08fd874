#include "compiler/spills.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/block_accesses.h"
#include "compiler/emit.h"
#include "compiler/memories.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"

namespace bantam::compiler {
namespace {

/// %v is used often, rests while much larger values come and go, and is used often again.
constexpr const char* kRestingModel = R"(graph "rest" {
  %x "x" = input : f32[1,256]
  %w = const : f32[1024,256] splat(0.001)
  %b = const : f32[256] splat(0.5)
  %v = unary(%x) {function="tanh"}
  %a1 = binary(%v, %x)
  %a2 = binary(%a1, %v)
  %a3 = binary(%a2, %v)
  %c = concat(%a3, %a1, %a2, %a3) {axis=1}
  %d = unary(%c) {function="tanh"}
  %e = binary(%d, %c)
  %f = binary(%e, %d)
  %g = binary(%f, %e)
  %h = binary(%g, %f)
  %m = matmul(%h, %w, %b)
  %r1 = binary(%m, %v)
  %r2 = binary(%r1, %v)
  %r3 = binary(%r2, %v)
  output "y" %r3
})";

std::vector<std::vector<std::byte>> outputs_of(const PlannedModel& model, std::size_t tiers) {
  format::PackageData data;
  EXPECT_TRUE(emit_model(model, "rest", data));
  data.fleet.emplace_back("rest", std::uint16_t{0});
  for (std::size_t t = 0; tiers > 1 && t < tiers; ++t) data.tiers.push_back({"tier", 0, 1});
  const format::PackageBytes bytes = format::write_package(data);
  auto placed = testing::place_package(bytes.bytes());
  if (!placed) return {};
  auto outputs = testing::run(*placed->fleet->session(0), 1);
  EXPECT_TRUE(placed->arena.intact());
  return outputs;
}

PlannedModel planned(const graph::Graph& graph) {
  auto model = plan_model(graph, {});
  EXPECT_TRUE(model) << model.error().message;
  return std::move(*model);
}

TEST(Spills, CopiesChangeNoResult) {
  const PlannedModel model = planned(testing::parse(kRestingModel));
  const std::vector<Spill> spills = find_spills(model);
  ASSERT_FALSE(spills.empty());
  EXPECT_TRUE(std::ranges::is_sorted(spills, std::greater<>(), &Spill::worth));
  const auto expected = outputs_of(model, 1);
  for (const Spill& spill : spills) {
    const graph::Graph copied = with_copies(model.graph, spill);
    ASSERT_TRUE(graph::verify(copied));
    EXPECT_EQ(copied.nodes.size(), model.graph.nodes.size() + (spill.copy_out ? 1 : 0) + (spill.copy_in ? 1 : 0));
    EXPECT_EQ(outputs_of(planned(copied), 1), expected);
  }
}

TEST(Spills, AValueThatRestsMakesRoomInTheFastMemory) {
  PlannedModel model = planned(testing::parse(kRestingModel));
  const auto expected = outputs_of(model, 1);
  const Accesses accesses = count_accesses(model);
  // Room for the large values and the tables, not for %v besides.
  constexpr std::uint64_t kFast = 9 * 1024;
  const std::vector<MemorySpec> memories = {{"fast", kFast, 1}, {"slow", 1 << 20, 10}};
  const MemoryNeeds needs{{{&model, "rest", 0, 1, {}}}, 0, sizeof(void*)};
  PlannedModel without = model;
  const auto choice = place_in_memories(needs, memories);
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_GT(model.copied_bytes, 0);
  const auto cost =
      static_cast<double>(choice->accessed_bytes[0]) + 10 * static_cast<double>(choice->accessed_bytes[1]);
  // What the tiers make of the model as it was, with nearly all of the fast memory for its activations.
  plan::Problem problem;
  for (const PlanBlock& b : without.blocks) problem.buffers.push_back({b.name, b.lower, b.upper, b.bytes, 16, {}});
  const auto whole =
      plan::plan_tiers(problem, accesses.blocks, std::vector<plan::Tier>{{kFast - 64, 1}, {1 << 20, 10}});
  ASSERT_TRUE(whole);
  EXPECT_LT(cost, whole->cost);
  EXPECT_EQ(outputs_of(model, 2), expected);
}

TEST(Spills, ModelsWithoutRestHaveNone) {
  EXPECT_TRUE(find_spills(planned(testing::parse(R"(graph "chain" {
  %x "x" = input : f32[1,256]
  %a = unary(%x) {function="tanh"}
  %b = binary(%a, %x)
  %c = unary(%b) {function="exp"}
  output "y" %c
})")))
                  .empty());
}

}  // namespace
}  // namespace bantam::compiler
