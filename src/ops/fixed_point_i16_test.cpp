#include "ops/fixed_point_i16.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bantam::ops {
namespace {

TEST(FixedPointI16, WholeRangeIsThatOfTheFormatsKernels) {
  // Polynomial hashes of all 65536 results of TensorFlow Lite's reference kernels with input scale 2^-12.
  std::uint32_t logistic = 0;
  std::uint32_t tanh = 0;
  for (int x = -32768; x < 32768; ++x) {
    const auto argument = static_cast<std::int16_t>(x);
    logistic = logistic * 31 + static_cast<std::uint32_t>(logistic_i16(argument, {}) + 40000);
    tanh = tanh * 31 + static_cast<std::uint32_t>(tanh_i16(argument, {}) + 40000);
  }
  EXPECT_EQ(logistic, 1952737749U);
  EXPECT_EQ(tanh, 3295340959U);
}

TEST(FixedPointI16, ApproximatesTheFunctions) {
  for (int x = -32768; x < 32768; x += 7) {
    const auto argument = static_cast<std::int16_t>(x);
    const double real = x / 4096.0;
    EXPECT_NEAR(logistic_i16(argument, {}) / 32768.0, 1 / (1 + std::exp(-real)), 2e-4) << x;
    EXPECT_NEAR(tanh_i16(argument, {}) / 32768.0, std::tanh(real), 4e-4) << x;
  }
}

TEST(FixedPointI16, IsDefinedForEveryParameter) {
  for (const std::int32_t multiplier : {INT32_MIN, -1, 0, INT32_MAX})
    for (const std::int32_t shift : {0, 31})
      for (const int x : {-32768, 0, 32767}) {
        const auto argument = static_cast<std::int16_t>(x);
        EXPECT_GE(logistic_i16(argument, {multiplier, shift}), 0);
        EXPECT_GE(tanh_i16(argument, {multiplier, shift}), -32768);
      }
}

TEST(FixedPointI16, InterpolatesBetweenEntries) {
  std::int16_t table[kLookup16Size] = {};
  for (int i = 0; i < kLookup16Size; ++i) table[i] = static_cast<std::int16_t>(i * 2);
  EXPECT_EQ(lookup_i16(-32768, table), 0);
  EXPECT_EQ(lookup_i16(-32768 + 64, table), 1);
  EXPECT_EQ(lookup_i16(0, table), 512);
  EXPECT_EQ(lookup_i16(32767, table), 1024);
}

}  // namespace
}  // namespace bantam::ops
