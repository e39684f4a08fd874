// Backends: chosen per model and per part of it, with a fallback per operator that says why.
#include "compiler/select.h"

#include <gtest/gtest.h>

#include "compiler/backends.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"

namespace bantam::compiler {
namespace {

constexpr const char* kManyKernels = R"(graph "heads" {
  %x "x" = input : f32[4,8]
  %at "at" = input : i64[2]
  %w = const : f32[8,8] splat(0.25)
  %b "backbone/product" = matmul(%x, %w)
  %l "left/product" = matmul(%b, %w)
  %m "left/norm" = softmax(%l)
  %r "right/product" = matmul(%b, %w)
  %s "right/rows" = gather(%r, %at)
  output "left" %m
  output "right" %s
})";

const Selection& of(const graph::Graph& graph, const std::vector<Selection>& selected, const std::string& node) {
  const auto it = std::ranges::find(graph.nodes, node, &graph::Node::name);
  EXPECT_NE(it, graph.nodes.end()) << node;
  return selected[static_cast<std::size_t>(it - graph.nodes.begin())];
}

bool is_plain(const Selection& selection) { return backend_def(Backend::kReference).owns(*selection.variant); }

TEST(Backends, EveryVariantOfEveryOperatorBelongsToExactlyOne) {
  for (const ops::OpDef* op : ops::all_ops())
    for (const ops::KernelVariant& variant : op->variants)
      EXPECT_EQ(std::ranges::count_if(all_backends(), [&](const BackendDef& b) { return b.owns(variant); }), 1)
          << op->name << " " << variant.name;
}

TEST(Backends, ReferenceTakesThePlainKernelOfEveryOperator) {
  const graph::Graph graph = testing::parse(kManyKernels);
  const auto selected = select_kernels(graph, {Backend::kReference});
  ASSERT_TRUE(selected) << selected.error().message;
  for (const Selection& selection : *selected) {
    EXPECT_TRUE(is_plain(selection));
    EXPECT_EQ(selection.fallback, "");
  }
}

TEST(Backends, OperatorWithoutAFastKernelFallsBackAndSaysWhy) {
  const graph::Graph graph = testing::parse(kManyKernels);
  const auto selected = select_kernels(graph);
  ASSERT_TRUE(selected) << selected.error().message;
  EXPECT_FALSE(is_plain(of(graph, *selected, "backbone/product")));
  EXPECT_TRUE(is_plain(of(graph, *selected, "right/rows")));
  EXPECT_EQ(of(graph, *selected, "right/rows").fallback, "there is no fast kernel for gather: reference");
}

TEST(Backends, FallbackNamesTheOperandsThatNoFastKernelSupports) {
  const graph::Graph graph = testing::parse(R"(graph "g" {
    %x "x" = input : f64[4]
    %y "y" = binary(%x, %x)
    output "y" %y
  })");
  const auto selected = select_kernels(graph);
  ASSERT_TRUE(selected) << selected.error().message;
  EXPECT_TRUE(is_plain(selected->front()));
  EXPECT_NE(selected->front().fallback.find("supports f64[4], f64[4]: reference"), std::string::npos)
      << selected->front().fallback;
}

TEST(Backends, NameOfAnOutputMeansWhatOnlyItNeeds) {
  const graph::Graph graph = testing::parse(kManyKernels);
  const auto selected = select_kernels(graph, {Backend::kFast, {{"left", Backend::kReference}}});
  ASSERT_TRUE(selected) << selected.error().message;
  EXPECT_TRUE(is_plain(of(graph, *selected, "left/product")));
  EXPECT_TRUE(is_plain(of(graph, *selected, "left/norm")));
  EXPECT_FALSE(is_plain(of(graph, *selected, "backbone/product")));
  EXPECT_FALSE(is_plain(of(graph, *selected, "right/product")));
}

TEST(Backends, LongestPatternCounts) {
  const graph::Graph graph = testing::parse(kManyKernels);
  const auto selected = select_kernels(graph, {Backend::kReference,
                                               {{"left/prod*", Backend::kFast},
                                                {"*", Backend::kReference},
                                                {"*product", Backend::kFast},
                                                {"right/product", Backend::kReference}}});
  ASSERT_TRUE(selected) << selected.error().message;
  EXPECT_FALSE(is_plain(of(graph, *selected, "left/product")));
  EXPECT_FALSE(is_plain(of(graph, *selected, "backbone/product")));
  EXPECT_TRUE(is_plain(of(graph, *selected, "right/product")));
  EXPECT_TRUE(is_plain(of(graph, *selected, "left/norm")));
}

TEST(Backends, RuleThatFitsNothingIsRefused) {
  const graph::Graph graph = testing::parse(kManyKernels);
  const auto selected = select_kernels(graph, {Backend::kFast, {{"middle*", Backend::kReference}}});
  ASSERT_FALSE(selected);
  EXPECT_NE(selected.error().message.find("'middle*'"), std::string::npos) << selected.error().message;
}

TEST(KernelRules, GiveANodeTheKernelThatTheyName) {
  const graph::Graph graph = testing::parse(kManyKernels);
  const auto selected = select_kernels(graph, {.kernels = {{"left/product", "any__ref"},
                                                           {"*product", "f32_dynamic__simd"},
                                                           {"right/product", "any__ref"},
                                                           {"right/product", "f32_dynamic__simd"},
                                                           {"left/norm", "i8__simd"}}});
  ASSERT_TRUE(selected) << selected.error().message;
  EXPECT_EQ(of(graph, *selected, "left/product").variant->name, "any__ref") << "the longest pattern counts";
  EXPECT_EQ(of(graph, *selected, "backbone/product").variant->name, "f32_dynamic__simd");
  EXPECT_EQ(of(graph, *selected, "right/product").variant->name, "f32_dynamic__simd")
      << "the last of equal patterns counts";
  EXPECT_EQ(of(graph, *selected, "left/norm").variant, select_kernels(graph)->at(2).variant) << "no such kernel";
}

TEST(KernelRules, ThatFitNoNodeAreRefused) {
  ModelSpec model{.path = "models/scene-head.onnx"};
  for (const auto& [pattern, kernel] : {std::pair("no such node", "any__ref"), std::pair("*", "f32__quantum")}) {
    model.kernels = {{pattern, kernel}};
    const auto compiled = bantam::compile({.models = {model}});
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error().code, StatusCode::kInvalidArgument);
    for (const char* part : {pattern, kernel})
      EXPECT_NE(compiled.error().message.find(part), std::string::npos) << compiled.error().message;
  }
}

TEST(Backends, ModelsOfOneFleetMayHaveDifferentOnes) {
  ModelSpec fast{.name = "fast", .path = "models/scene-head.onnx"};
  ModelSpec plain{.name = "plain", .path = "models/scene-head.onnx"};
  plain.backend = Backend::kReference;
  const auto compiled = bantam::compile({.models = {fast, plain}});
  ASSERT_TRUE(compiled) << compiled.error().message;
  ASSERT_EQ(compiled->models().size(), 2U);
  const auto plain_steps = [](const ModelReport& report) {
    return std::ranges::count_if(report.steps, [](const StepReport& s) { return s.variant.ends_with("__ref"); });
  };
  EXPECT_LT(plain_steps(compiled->models()[0]), static_cast<std::int64_t>(compiled->models()[0].steps.size()));
  EXPECT_EQ(plain_steps(compiled->models()[1]), static_cast<std::int64_t>(compiled->models()[1].steps.size()));
}

}  // namespace
}  // namespace bantam::compiler
