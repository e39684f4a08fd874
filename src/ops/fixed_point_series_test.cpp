#include "ops/fixed_point_series.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bantam::ops {
namespace {

TEST(FixedPointSeries, InverseSquareRootIsThatOfTheNumber) {
  for (std::int64_t x = 2; x < 0x7fffffff; x = x * 5 / 4 + 1) {
    const FixedFactor y = inverse_square_root(static_cast<std::int32_t>(x));
    const double real = std::ldexp(y.multiplier, y.shift - 31);
    EXPECT_NEAR(real * std::sqrt(static_cast<double>(x)), 1, 3e-4) << x;
  }
  EXPECT_EQ(inverse_square_root(0).multiplier, 0x7fffffff);
  EXPECT_EQ(inverse_square_root(1).shift, 0);
}

TEST(FixedPointSeries, LogarithmIsThatOfTheNumber) {
  for (std::int64_t x = 1 << 19; x < 0x7fffffff; x = x * 9 / 8 + 1) {
    const double real = std::ldexp(static_cast<double>(x), -19);
    EXPECT_NEAR(std::ldexp(log_q12_to_q5(static_cast<std::int32_t>(x)), -26), std::log(real), 1e-5) << x;
  }
}

}  // namespace
}  // namespace bantam::ops
