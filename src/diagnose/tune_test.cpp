#include "diagnose/tune.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/testing/placed_fleet.h"

namespace bantam::diagnose {
namespace {

TuneOptions quick() {
  TuneOptions options;
  options.rounds = 2;
  options.seconds = 0;
  options.fill = [](Session& session) -> Result<void> {
    compiler::testing::fill_inputs(session, 1);
    return {};
  };
  return options;
}

/// The model's first convolution.
StepReport convolution(const ModelSpec& model) {
  const auto compiled = compile({.models = {model}});
  if (!compiled) return {};
  return *std::ranges::find(compiled->models().front().steps, "conv2d", &StepReport::op);
}

TEST(Tune, ReplacesAKernelThatIsManyTimesSlowerThanAnother) {
  ModelSpec model{.name = "keyword", .path = "models/keyword.onnx"};
  const StepReport layer = convolution(model);
  if (layer.variant == "any__ref") GTEST_SKIP() << "this build has no vector kernels";
  model.kernels = {{layer.name, "any__ref"}};
  const auto tuning = tune({.models = {model}}, {}, quick());
  ASSERT_TRUE(tuning) << tuning.error().message;
  EXPECT_GT(tuning->compared, 1U);
  const auto tuned = std::ranges::find(tuning->layers, layer.name, &TunedLayer::layer);
  ASSERT_NE(tuned, tuning->layers.end());
  EXPECT_EQ(tuned->before, "any__ref");
  EXPECT_EQ(tuned->after, layer.variant);
  EXPECT_LT(tuned->after_us, tuned->before_us);
  EXPECT_LT(tuning->after_us, tuning->before_us);
  // The rules make a compilation choose so.
  const auto compiled = compile(tuning->fleet);
  ASSERT_TRUE(compiled) << compiled.error().message;
  const auto& steps = compiled->models().front().steps;
  EXPECT_EQ(std::ranges::find(steps, layer.name, &StepReport::name)->variant, layer.variant);
}

// The first convolution's picture is transposed by a step of its name.
TEST(Tune, GivesALayerNoKernelOfAnotherOperatorOfItsName) {
  ModelSpec model{.name = "sign", .path = "models/sign.onnx", .dims = {{"batch", 1}}};
  const StepReport layer = convolution(model);
  if (layer.variant == "any__ref") GTEST_SKIP() << "this build has no vector kernels";
  model.kernels = {{layer.name, "any__ref"}};
  const auto tuning = tune({.models = {model}}, {}, quick());
  ASSERT_TRUE(tuning) << tuning.error().message;
  const auto tuned = std::ranges::find(tuning->layers, layer.name, &TunedLayer::layer);
  ASSERT_NE(tuned, tuning->layers.end());
  EXPECT_NE(tuned->after, "any__ref");
  const auto compiled = compile(tuning->fleet);
  ASSERT_TRUE(compiled) << compiled.error().message;
  const auto& steps = compiled->models().front().steps;
  const auto convolution = std::ranges::find_if(
      steps, [&](const StepReport& step) { return step.name == layer.name && step.op == layer.op; });
  EXPECT_EQ(convolution->variant, tuned->after);
}

TEST(Tune, OfAModelThatCannotBeCompiledFails) {
  const auto tuning = tune({.models = {{.path = "models/no-such-model.onnx"}}}, {}, quick());
  ASSERT_FALSE(tuning);
  EXPECT_NE(tuning.error().message.find("no-such-model"), std::string::npos) << tuning.error().message;
}

}  // namespace
}  // namespace bantam::diagnose
