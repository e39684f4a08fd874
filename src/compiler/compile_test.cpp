// The public compile call on the bundled models: what it plans, and what it says when it cannot.
#include <gtest/gtest.h>

#include "bantam/compiler.h"
#include "bantam/open_fleet.h"
#include "compiler/kernel_list.h"
#include "compiler/testing/placed_fleet.h"

namespace bantam::compiler {
namespace {

ModelSpec model(const std::string& name) { return {.name = name, .path = "models/" + name + ".onnx"}; }

std::string message_of(const FleetSpec& fleet, const CompileOptions& options = {}) {
  const auto compiled = bantam::compile(fleet, options);
  return compiled ? "compiled" : compiled.error().message;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Compile, BudgetTooSmallNamesTheSmallestArenaAndTheLayer) {
  FleetSpec fleet{.models = {model("keyword"), model("scene-head")}};
  fleet.budget = 1;
  const auto smallest = bantam::compile(fleet, {.best_effort = true});
  ASSERT_TRUE(smallest) << smallest.error().message;
  const std::uint64_t need = smallest->requirements().arena_bytes;
  fleet.budget = need;
  EXPECT_TRUE(bantam::compile(fleet));
  fleet.budget = need - 1;
  const auto refused = bantam::compile(fleet);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StatusCode::kArenaTooSmall);
  const std::string& message = refused.error().message;
  EXPECT_TRUE(has(message, "smallest arena that works is " + std::to_string(need))) << message;
  EXPECT_TRUE(has(message, "', set by layer '")) << message;
  EXPECT_TRUE(has(refused.error().remedy, std::to_string(need))) << refused.error().remedy;
}

TEST(Compile, TargetDecidesKernelsAndPointerSize) {
  const auto m4 = bantam::find_target("cortex-m4");
  ASSERT_TRUE(m4) << m4.error().message;
  const FleetSpec fleet{.models = {model("keyword"), model("scene-head")}};
  const auto device = bantam::compile(fleet, {.target = *m4});
  const auto host = bantam::compile(fleet);
  ASSERT_TRUE(device && host);
  for (const ModelReport& report : device->models())
    for (const StepReport& step : report.steps) EXPECT_TRUE(m4->has_kernel(step.variant)) << step.name << step.variant;
  Package package;
  ASSERT_TRUE(Package::open(device->package(), &package).ok());
  EXPECT_EQ(device->requirements().arena_bytes, package.requirements(4).arena_bytes);
  EXPECT_LT(package.requirements(4).table_bytes, package.requirements(8).table_bytes);
  const std::string kernels = kernel_list(package);
  EXPECT_TRUE(has(kernels, "{\"matmul\", \"")) << kernels;
  EXPECT_FALSE(has(kernels, "simd")) << kernels;
}

TEST(Compile, UnknownTargetIsRefusedWithTheKnownOnes) {
  const auto target = bantam::find_target("pdp-11");
  ASSERT_FALSE(target);
  for (const Target& known : bantam::all_targets())
    EXPECT_TRUE(has(target.error().message, std::string(known.name))) << target.error().message;
}

TEST(Compile, ModelsThatNeverRunAtOnceShareActivations) {
  const auto one = bantam::compile({.models = {model("keyword")}});
  const auto two = bantam::compile({.models = {model("keyword"), model("scene-head")}});
  ASSERT_TRUE(one && two);
  EXPECT_EQ(two->requirements().activation_bytes, one->requirements().activation_bytes);
  EXPECT_LT(two->requirements().arena_bytes, two->separate_bytes());
  EXPECT_LE(two->lower_bound_bytes(), two->requirements().arena_bytes);
}

TEST(Compile, SessionsOfOneModelAreStoredOnce) {
  const auto one = bantam::compile({.models = {model("keyword")}});
  const auto three = bantam::compile(
      {.models = {model("keyword")}, .sessions = {{"a", "keyword"}, {"b", "keyword"}, {"c", "keyword"}}});
  ASSERT_TRUE(one && three);
  EXPECT_EQ(three->requirements().weights_bytes, one->requirements().weights_bytes);
  EXPECT_EQ(three->models().size(), 1U);
}

TEST(Compile, EqualWeightsOfTwoModelsAreStoredOnce) {
  ModelSpec twin = model("keyword");
  twin.name = "twin";
  const auto one = bantam::compile({.models = {model("keyword")}});
  const auto two = bantam::compile({.models = {model("keyword"), twin}});
  ASSERT_TRUE(one && two);
  EXPECT_EQ(two->requirements().weights_bytes, one->requirements().weights_bytes);
}

TEST(Compile, OneOutputMayFeedSeveralSessions) {
  FleetSpec fleet{.models = {model("scene-backbone"), model("scene-head")},
                  .sessions = {{"backbone", "scene-backbone"}, {"one", "scene-head"}, {"two", "scene-head"}},
                  .links = {{"backbone", "features", "one", "features"}, {"backbone", "features", "two", "features"}}};
  auto open = OpenFleet::compile(fleet);
  ASSERT_TRUE(open) << open.error().message;
  EXPECT_EQ(open->requirements().link_bytes, open->find("backbone")->output_info(0).bytes);
  testing::run(*open->find("backbone"), 1);
  ASSERT_TRUE(open->find("one")->invoke().ok());
  const auto said = testing::outputs_of(*open->find("one"));
  ASSERT_TRUE(open->find("two")->invoke().ok());
  EXPECT_EQ(testing::outputs_of(*open->find("two")), said);
}

TEST(Compile, BadFleetsAreRefusedByName) {
  EXPECT_TRUE(has(message_of({}), "no model"));
  EXPECT_TRUE(has(message_of({.models = {model("keyword"), model("keyword")}}), "two models are called 'keyword'"));
  EXPECT_TRUE(has(message_of({.models = {model("absent")}}), "absent.onnx"));
  EXPECT_TRUE(has(message_of({.models = {model("keyword")}, .sessions = {{"s", "keywort"}}}), "'keywort'"));
  EXPECT_TRUE(has(message_of({.models = {model("keyword")}}, {.threads = 65}), "thread count 65"));
  EXPECT_TRUE(has(message_of({.models = {model("keyword")}}, {.stop_after = "no-such-pass"}), "no-such-pass"));
  const std::vector<ModelSpec> pair = {model("scene-backbone"), model("scene-head")};
  EXPECT_TRUE(has(message_of({.models = pair, .links = {{"scene-backbone", "x", "scene-head", "features"}}}), "'x'"));
  EXPECT_TRUE(has(message_of({.models = pair, .links = {{"scene-head", "night", "scene-backbone", "picture"}}}),
                  "the output is f32"));
  EXPECT_TRUE(has(message_of({.models = pair, .links = {{"scene-backbone", "features", "scene-backbone", "picture"}}}),
                  "joins a session with itself"));
  EXPECT_TRUE(has(message_of({.models = pair,
                              .links = {{"scene-backbone", "features", "scene-head", "features"},
                                        {"scene-backbone", "features", "scene-head", "features"}}}),
                  "has a link already"));
}

}  // namespace
}  // namespace bantam::compiler
