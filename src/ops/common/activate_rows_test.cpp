#include "ops/common/activate_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace bantam::ops {
namespace {

/// Steps of silu(x) for each x.
std::vector<std::int32_t> silu_steps_of(const std::vector<float>& xs, float step) {
  AffineScaler scaler;
  scaler.activation.function = UnaryFunction::kSilu;
  scaler.output_scale = step;
  std::vector<std::int32_t> numbers;
  for (const float x : xs) numbers.push_back(std::bit_cast<std::int32_t>(x));
  round_activated(scaler, numbers.data(), static_cast<std::int64_t>(numbers.size()));
  return numbers;
}

TEST(RoundActivated, SiluIsWithinASmallPartOfAStep) {
  constexpr double kPart = 0.5 + 1.0 / 32 + 1e-3;
  std::vector<float> xs;
  for (int i = -40'000; i <= 40'000; ++i) xs.push_back(static_cast<float>(i) / 2048);
  for (const float step : {0.002F, 0.004F, 0.01F, 0.15F}) {
    const std::vector<std::int32_t> steps = silu_steps_of(xs, step);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const double x = xs[i];
      const double exact = std::min(x / (1 + std::exp(-x)) / step, 127.0);  // beyond, only the side counts
      EXPECT_LE(std::abs(std::min(steps[i], 127) - exact), kPart) << x << " in steps of " << step;
    }
  }
}

TEST(RoundActivated, SiluOfNumbersBeyondAllRangesIsOnTheirSide) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float step : {0.002F, 0.02F}) {
    const std::vector<std::int32_t> steps =
        silu_steps_of({1e6F, 1e30F, kInfinity, -1e6F, -1e30F, std::numeric_limits<float>::quiet_NaN()}, step);
    for (const std::size_t i : {0, 1, 2}) EXPECT_GE(steps[i], 127) << i;
    for (const std::size_t i : {3, 4, 5}) EXPECT_EQ(steps[i], 0) << i;
  }
}

}  // namespace
}  // namespace bantam::ops
