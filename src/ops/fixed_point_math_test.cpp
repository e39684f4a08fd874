#include "ops/fixed_point_math.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bantam::ops {
namespace {

constexpr double kUnit = 1.0 / 2147483648.0;

TEST(FixedPointMath, ExpStaysWithinAFewUnits) {
  for (std::int64_t raw = std::numeric_limits<std::int32_t>::min(); raw < 0; raw += 99991) {
    const auto x = static_cast<std::int32_t>(raw);
    ASSERT_NEAR(exp_of_negative<5>(x) * kUnit, std::exp(32 * kUnit * x), 4e-7) << x;
    ASSERT_NEAR(exp_of_negative<0>(x) * kUnit, std::exp(x * kUnit), 4e-7) << x;
  }
  EXPECT_EQ(exp_of_negative<5>(0), std::numeric_limits<std::int32_t>::max());
}

TEST(FixedPointMath, LogisticAndTanhStayWithinAFewUnits) {
  for (std::int64_t raw = std::numeric_limits<std::int32_t>::min(); raw < 0x7fffffff; raw += 99991) {
    const auto x = static_cast<std::int32_t>(raw);
    ASSERT_NEAR(logistic_q4(x) * kUnit, 1 / (1 + std::exp(-16 * kUnit * x)), 4e-7) << x;
    ASSERT_NEAR(tanh_q4(x) * kUnit, std::tanh(16 * kUnit * x), 8e-7) << x;
  }
}

TEST(FixedPointMath, ReciprocalKeepsMantissaAndExponent) {
  const FixedPointReciprocal half = fixed_point_reciprocal(2 << 19, 12);
  EXPECT_EQ(half.exponent, 1);
  EXPECT_NEAR(half.mantissa * kUnit, 1.0, 1e-8);
  const FixedPointReciprocal third = fixed_point_reciprocal(3 << 19, 12);
  EXPECT_NEAR(third.mantissa * kUnit / 2, 1.0 / 3, 1e-8);
  EXPECT_EQ(fixed_point_reciprocal(-5, 12).exponent, fixed_point_reciprocal(1, 12).exponent);
}

TEST(FixedPointMath, Int8ActivationsRoundTheRealFunctions) {
  for (const double scale : {0.0470588244497776, 0.1, 0.00390625, 1.0}) {
    const ActivationInput input = activation_input(scale);
    for (int q = -255; q <= 255; ++q) {
      const double sigmoid = 256 / (1 + std::exp(-q * scale)) - 128;
      EXPECT_NEAR(logistic_i8(q, input), std::min(sigmoid, 127.0), 0.51) << q;
      EXPECT_NEAR(tanh_i8(q, input), std::min(128 * std::tanh(q * scale), 127.0), 0.51) << q;
    }
  }
}

TEST(FixedPointMath, ExtremeScalesAreDefined) {
  EXPECT_EQ(logistic_i8(1, activation_input(1e30)), 127);
  EXPECT_EQ(logistic_i8(-1, activation_input(1e30)), -128);
  EXPECT_EQ(logistic_i8(200, activation_input(1e-30)), 0);
  EXPECT_EQ(tanh_i8(200, activation_input(1e-30)), 0);
  EXPECT_EQ(activation_input(0.125).multiplier, 1 << 30);
  EXPECT_EQ(activation_input(0.125).shift, 25);
  EXPECT_EQ(activation_input(0.125).radius, 60);
}

}  // namespace
}  // namespace bantam::ops
