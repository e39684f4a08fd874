// In which type weights are stored: by the model, by rules, and what that does to packages.
#include "compiler/narrow_weights.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <span>

#include "compiler/select.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"

namespace bantam::compiler {
namespace {

/// Weights of 0.25 are halves, 2^20 is a bfloat16, 0.1 neither; the last are few.
constexpr const char* kProducts = R"(graph "g" {
  %x "x" = input : f32[4,40]
  %half = const : f32[40,40] splat(0.25)
  %wide = const : f32[40,40] splat(1048576)
  %odd = const : f32[40,40] splat(0.1)
  %few = const : f32[40,8] splat(0.25)
  %a "a/half" = matmul(%x, %half)
  %b "b/wide" = matmul(%a, %wide)
  %c "c/odd" = matmul(%b, %odd)
  %d "d/few" = matmul(%c, %few)
  output "y" %d
})";

std::string kernels(const std::vector<StoreRule>& stores, Backend backend = Backend::kFast) {
  KernelPolicy policy;
  policy.backend = backend;
  policy.stores = stores;
  const auto selected = select_kernels(testing::parse(kProducts), policy);
  EXPECT_TRUE(selected) << selected.error().message;
  std::string names;
  for (const Selection& selection : *selected) names += std::string(selection.variant->name) + " ";
  return names;
}

TEST(NarrowWeights, AreWhatLosesNothingUnlessARuleSaysMore) {
  EXPECT_EQ(kernels({}), "f32_packed_f16__simd f32_packed_bf16__simd f32_packed__simd f32_packed__simd ");
  EXPECT_EQ(kernels({{"*", ElementType::kF32}}),
            "f32_packed__simd f32_packed__simd f32_packed__simd f32_packed__simd ");
  EXPECT_EQ(kernels({{"*", ElementType::kI8}, {"a/*", ElementType::kI4}}),
            "f32_packed_i4__simd f32_packed_i8__simd f32_packed_i8__simd f32_packed_i8__simd ");
  // What f16 cannot hold stays as it is.
  EXPECT_EQ(kernels({{"*", ElementType::kF16}}),
            "f32_packed_f16__simd f32_packed__simd f32_packed_f16__simd f32_packed_f16__simd ");
  EXPECT_EQ(kernels({{"*", ElementType::kI8}}, Backend::kReference), "any__ref any__ref any__ref any__ref ");
}

TEST(NarrowWeights, AreLookedThroughOnceWhileTheyLive) {
  graph::Graph graph = testing::parse(kProducts);
  const graph::Node& node = graph.nodes.front();
  graph::Value& weights = graph.value(node.inputs[1]);
  std::array<float, 1600> memory{};
  const auto lie_in_memory = [&](float weight) {
    memory.fill(weight);
    weights.constant = graph::Constant{std::as_bytes(std::span(memory)), std::make_shared<int>()};
  };
  const StoreTypes types;
  lie_in_memory(0.25F);
  EXPECT_EQ(types.of(graph, node).type, ElementType::kF16);
  memory.fill(0.1F);
  EXPECT_EQ(StoreTypes(types).of(graph, node).type, ElementType::kF16) << "a copy knows what was found";
  EXPECT_EQ(StoreTypes().of(graph, node).type, ElementType::kNone);
  lie_in_memory(0.1F);
  EXPECT_EQ(types.of(graph, node).type, ElementType::kNone) << "other weights lie at the same place now";
  weights.constant->owner = nullptr;
  EXPECT_EQ(types.of(graph, node).type, ElementType::kNone);
  memory.fill(0.25F);
  EXPECT_EQ(types.of(graph, node).type, ElementType::kF16) << "nobody says how long these live";
}

TEST(NarrowWeights, SumsOfProductsHave16BitsOnlyWhereTheyFit) {
  graph::Graph graph = testing::parse(kProducts);
  const graph::Node& node = graph.nodes.front();
  std::array<float, 1600> weights{};
  const auto form = [&](float weight) {
    weights.fill(weight);
    graph.value(node.inputs[1]).constant = graph::Constant{std::as_bytes(std::span(weights)), std::make_shared<int>()};
    return StoreTypes({{"*", ElementType::kF16, true}}).of(graph, node);
  };
  EXPECT_EQ(form(39.0F), (ops::NarrowForm{ElementType::kF16, true}));
  EXPECT_EQ(form(-41.0F), (ops::NarrowForm{ElementType::kF16, false}));
  EXPECT_EQ(form(1e6F), ops::NarrowForm{}) << "not even stored in 16 bits";
}

TEST(NarrowWeights, RulesThatFitNothingAreRefused) {
  const graph::Graph graph = testing::parse(kProducts);
  EXPECT_TRUE(check_store_rules(graph, {{"c/odd", ElementType::kI8}}));
  const auto refused = check_store_rules(graph, {{"nothing*", ElementType::kI8}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("'nothing*'"), std::string::npos) << refused.error().message;
  EXPECT_FALSE(store_rule("*", "i16"));
  EXPECT_EQ(store_rule("*", "bf16")->type, ElementType::kBF16);
  EXPECT_FALSE(store_rule("*", "f16")->half_arithmetic);
  EXPECT_TRUE(store_rule("*", "f16-arithmetic")->half_arithmetic);
}

TEST(NarrowWeights, NoOtherKernelOfTheLayerRoundsThemOtherwise) {
  const graph::Graph graph = testing::parse(kProducts);
  const graph::Node& node = graph.nodes.front();
  const auto* half = ops::find_variant(*node.op, "f32_packed_f16__simd");
  ASSERT_NE(half, nullptr);
  EXPECT_TRUE(alternatives(graph, node, *half, {}).empty());
  KernelPolicy policy;
  policy.sparing.insert("a/half");
  const auto selected = select_kernels(graph, policy);
  ASSERT_TRUE(selected);
  EXPECT_EQ(selected->front().variant, half);
}

std::vector<float> outputs(const PlanOptions& options, std::size_t* package_bytes) {
  const auto made = testing::compile_text(kProducts, options);
  EXPECT_TRUE(made) << made.error().message;
  *package_bytes = made->package.bytes().size();
  auto placed = testing::place_package(made->package.bytes());
  EXPECT_TRUE(placed.has_value());
  const std::vector<std::byte> bytes = testing::run(*placed->fleet->session(0), 3).front();
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(NarrowWeights, MakePackagesSmallerAndResultsAsFarOffAsTheWeights) {
  std::size_t plain_bytes = 0;
  std::size_t own_bytes = 0;
  std::size_t byte_bytes = 0;
  const auto plain = outputs({.stores = {{"*", ElementType::kF32}}}, &plain_bytes);
  EXPECT_EQ(plain, outputs({}, &own_bytes)) << "weights that lose nothing give the same bits";
  const auto rounded = outputs({.stores = {{"*", ElementType::kI8}}}, &byte_bytes);
  EXPECT_GT(plain_bytes, own_bytes + 2 * 40 * 40 * 2);
  EXPECT_GT(own_bytes, byte_bytes + 40 * 40 * 2);
  // Equal weights are their own scale times 127.
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(rounded[i], plain[i], std::abs(plain[i]) * 1e-5F) << i;
}

TEST(NarrowWeights, ReportsSayWhatWasSavedAndLost) {
  const graph::Graph graph = testing::parse(R"(graph "g" {
    %x "x" = input : f32[1,32]
    %w = const : f32[32,1] {7, 2.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
    %y "y" = matmul(%x, %w)
    output "y" %y
  })");
  const graph::Node& node = graph.nodes.front();
  const auto* variant = ops::find_variant(*node.op, "f32_packed_i4__simd");
  ASSERT_NE(variant, nullptr);
  const graph::OperandTables tables = graph::operand_tables(graph, node);
  const NarrowingEffect effect =
      narrowing_effect(tables.call(node), *variant, *ops::find_narrowing(*node.op, *variant));
  EXPECT_FLOAT_EQ(effect.error, 0.5F / 7.0F);
  EXPECT_EQ(effect.saved_bytes, 32 * 4 - (16 * 2 + 32 * 8));  // one column fills a panel of 16
}

}  // namespace
}  // namespace bantam::compiler
