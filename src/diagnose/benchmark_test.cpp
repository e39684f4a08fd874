#include "diagnose/benchmark.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "compiler/testing/placed_fleet.h"

namespace bantam::diagnose {
namespace {

TEST(ShareOfRoof, IsTheLeastTimeOfTheWorkOverTheTimeTaken) {
  const schedule::Roof roof{.float_macs = 1e6, .half_macs = 2e6, .integer_macs = 4e6};  // 1, 2 and 4 a us
  const std::vector<OperatorTime> times = {{.op = "conv2d", .work = 100},
                                           {.op = "conv2d", .work = 100, .factors = Factors::kHalves},
                                           {.op = "conv2d", .work = 200, .factors = Factors::kBytes}};
  EXPECT_DOUBLE_EQ(share_of_roof(roof, times, 400), 0.5);
  EXPECT_DOUBLE_EQ(share_of_roof({}, times, 300), 0) << "a roof that is not known";
  EXPECT_DOUBLE_EQ(share_of_roof(roof, times, 0), 0);
}

TEST(Benchmark, TimesTheStepsOfThePlanAndAddsThemUpByKernel) {
  const auto placed =
      compiler::testing::place_fleet({.models = {{.path = "models/sign.onnx", .dims = {{"batch", 1}}}}});
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  compiler::testing::fill_inputs(session, 1);
  const auto result = benchmark(session, {.warmup = 1, .runs = 2, .seconds = 0});
  ASSERT_TRUE(result) << result.error().message;
  const auto& steps = placed->compiled->models().front().steps;
  ASSERT_EQ(result->layers.size(), steps.size());
  std::int64_t work = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(result->layers[i].layer, steps[i].name);
    EXPECT_EQ(result->layers[i].work, steps[i].work);
    EXPECT_EQ(result->layers[i].factors, Factors::kFloats);
    EXPECT_GT(result->layers[i].microseconds, 0);
    work += steps[i].work;
  }
  std::int64_t calls = 0;
  for (const OperatorTime& kernel : result->operators) {
    calls += kernel.calls;
    work -= kernel.work;
  }
  EXPECT_EQ(calls, static_cast<std::int64_t>(steps.size()));
  EXPECT_EQ(work, 0);
}

TEST(Benchmark, EveryInvokeGetsTheSameInputs) {
  const auto placed =
      compiler::testing::place_fleet({.models = {{.path = "models/sign.onnx", .dims = {{"batch", 1}}}}});
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  const auto bytes = [](const Tensor& tensor) {
    const auto* first = static_cast<const std::byte*>(tensor.data);
    return std::vector<std::byte>(first, first + tensor.desc->bytes());
  };
  compiler::testing::fill_inputs(session, 1);
  const auto input = bytes(session.input(0));
  ASSERT_TRUE(session.invoke().ok());
  const auto output = bytes(session.output(0));
  ASSERT_NE(bytes(session.input(0)), input) << "activations lie in the input's place";
  compiler::testing::fill_inputs(session, 1);
  ASSERT_TRUE(benchmark(session, {.warmup = 1, .runs = 2, .seconds = 0}));
  EXPECT_EQ(bytes(session.output(0)), output);
}

}  // namespace
}  // namespace bantam::diagnose
