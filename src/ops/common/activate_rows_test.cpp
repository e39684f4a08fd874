#include "ops/common/activate_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace bantam::ops {
namespace {

AffineScaler scaler_with(UnaryFunction function, float step) {
  AffineScaler scaler;
  scaler.activation.function = function;
  scaler.output_scale = step;
  return scaler;
}

/// Steps of function(x) for each x.
std::vector<std::int32_t> steps_of(UnaryFunction function, const std::vector<float>& xs, float step) {
  const AffineScaler scaler = scaler_with(function, step);
  std::vector<std::int32_t> numbers;
  for (const float x : xs) numbers.push_back(std::bit_cast<std::int32_t>(x));
  round_activated(scaler, numbers.data(), static_cast<std::int64_t>(numbers.size()));
  return numbers;
}

/// Expects results of numbers from -20 to 20 to be at most `part` of a step off.
template <class Exact>
void expect_close(UnaryFunction function, Exact exact, double part) {
  std::vector<float> xs;
  for (int i = -40'000; i <= 40'000; ++i) xs.push_back(static_cast<float>(i) / 2048);
  for (const float step : {0.002F, 0.004F, 0.01F, 0.15F}) {
    const std::vector<std::int32_t> steps = steps_of(function, xs, step);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const double expected = std::min(exact(static_cast<double>(xs[i])) / step, 127.0);  // beyond, the side counts
      EXPECT_LE(std::abs(std::min(steps[i], 127) - expected), part) << xs[i] << " in steps of " << step;
    }
  }
}

double silu(double x) { return x / (1 + std::exp(-x)); }

double hard_swish(double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }

TEST(RoundActivated, SiluIsWithinASmallPartOfAStep) { expect_close(UnaryFunction::kSilu, silu, 0.5 + 1.0 / 32 + 1e-3); }

TEST(RoundActivated, HardSwishIsTheNearestStep) { expect_close(UnaryFunction::kHardSwish, hard_swish, 0.5 + 1e-3); }

/// Expects results of numbers beyond all ranges to be so on their side, or 0 as those of NaN.
void expect_sides(UnaryFunction function, float step) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<std::int32_t> steps =
      steps_of(function, {1e6F, 1e30F, kInfinity, -1e6F, -1e30F, std::numeric_limits<float>::quiet_NaN()}, step);
  for (const std::size_t i : {0, 1, 2}) EXPECT_GE(steps[i], 127) << i << " in steps of " << step;
  for (const std::size_t i : {3, 4, 5}) EXPECT_EQ(steps[i], 0) << i << " in steps of " << step;
}

TEST(RoundActivated, SiluOfNumbersBeyondAllRangesIsOnTheirSide) {
  for (const float step : {0.002F, 0.02F}) expect_sides(UnaryFunction::kSilu, step);
}

TEST(RoundActivated, HardSwishOfNumbersBeyondAllRangesIsOnTheirSide) {
  for (const float step : {0x1p-120F, 0.002F, 0.02F}) expect_sides(UnaryFunction::kHardSwish, step);
}

TEST(RoundActivated, HardSwishIsTheSameAsOfTheReference) {
  std::vector<float> xs;
  for (int i = -20'000; i <= 20'000; ++i) xs.push_back(static_cast<float>(i) / 4096 + 1e-4F);
  for (const float step : {0x1p-110F, 0.0031F, 0.0237F, 1.7F}) {
    const AffineScaler scaler = scaler_with(UnaryFunction::kHardSwish, step);
    const std::vector<std::int32_t> steps = steps_of(UnaryFunction::kHardSwish, xs, step);
    for (std::size_t i = 0; i < xs.size(); ++i)
      EXPECT_EQ(std::clamp(steps[i], -128, 127),
                static_cast<std::int8_t>(scaler.to_byte(scaler.activated_steps(xs[i]))))
          << xs[i] << " in steps of " << step;
  }
}

}  // namespace
}  // namespace bantam::ops
