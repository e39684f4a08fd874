#include "ops/nn/gemm/gemm_f16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "ops/testing/guarded_memory.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using testing::GuardedMemory;
using testing::Random;
using testing::random_int;

std::vector<float> random_floats(std::int64_t n, float largest, Random& random) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& v : values) v = static_cast<float>(random_int(random, -1000, 1000)) / 1000.0F * largest;
  return values;
}

/// To 16 bits, at once: by way of f32 some numbers would be rounded twice. Requires |x| < 65520.
float rounded(double x) {
  if (x == 0) return 0;
  const double step = std::ldexp(1.0, std::max(std::ilogb(x), -14) - 10);
  return static_cast<float>(std::nearbyint(x / step) * step);
}

/// A power of two, of which the largest of the numbers is 8 or more times as much, but less than 16 times.
float scale_of(const float* numbers, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::fmax(largest, std::fabs(numbers[i]));
  return largest > 0 ? std::ldexp(1.0F, std::ilogb(largest) - 3) : 1.0F;
}

struct HalfProduct {
  std::int64_t m, k, n;
  std::vector<float> a, b, bias;
  std::vector<std::byte> panels;

  HalfProduct(std::int64_t rows, std::int64_t depth, std::int64_t columns, Random& random, float largest = 1.0F)
      : m(rows),
        k(depth),
        n(columns),
        a(random_floats(m * k, largest, random)),
        b(random_floats(k * n, 1.0F, random)),
        bias(random_floats(n, largest, random)),
        panels(static_cast<std::size_t>(gemm::narrow_bytes(ElementType::kF16, k, n))) {
    gemm::pack_narrow(ElementType::kF16, b.data(), k, n, n, 1, panels.data());
  }

  /// As gemm_f16.h defines it. In double sums of two such numbers are exact, so that each step is rounded once.
  float expected(std::int64_t row, std::int64_t column) const {
    float y = bias[static_cast<std::size_t>(column)];
    const std::int64_t piece = gemm::half_piece(k);
    for (std::int64_t begin = 0; begin < k; begin += piece) {
      const std::int64_t end = std::min(begin + piece, k);
      const float* left = a.data() + row * k;
      const float scale = scale_of(left + begin, end - begin);
      float sum = 0;
      for (std::int64_t i = begin; i < end; ++i)
        sum = rounded(
            static_cast<double>(rounded(left[i] / scale)) * rounded(b[static_cast<std::size_t>(i * n + column)]) + sum);
      y = std::fma(sum, scale, y);
    }
    return std::fmax(y, 0.0F);
  }

  /// Rows of y are two elements longer than n; those keep 7.
  std::vector<float> multiply(std::int64_t room_bytes) const {
    std::vector<float> y(static_cast<std::size_t>(m * (n + 2)), 7.0F);
    GuardedMemory room_memory(static_cast<std::size_t>(room_bytes), 64);
    const gemm::HalfRoom room(room_memory.data(), room_bytes, k, m);
    const auto row = [&](std::int64_t i, std::int64_t first_k, std::int64_t, float*) {
      return a.data() + i * k + first_k;
    };
    gemm::multiply_half_rows(m, row, {ElementType::kF16, panels.data(), k, n}, 0, gemm::panel_count(n),
                             {y.data(), n + 2, bias.data(), {UnaryFunction::kRelu, 0, 0}}, room);
    return y;
  }
};

class GemmF16 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gemm::half_products()) GTEST_SKIP() << "this processor, or this build, has no arithmetic of 16-bit floats";
  }
};

TEST_F(GemmF16, ResultsAreRoundedAsDefinedWhateverTheTilesAndTheRoom) {
  Random random(11);
  for (int i = 0; i < 60; ++i) {
    const HalfProduct p(random_int(random, 1, 40), random_int(random, 1, i == 0 ? 600 : 130),
                        random_int(random, 1, 140), random, i % 3 == 0 ? 1e6F : 1.0F);
    const std::int64_t least = gemm::HalfRoom::least_bytes(p.k, p.m);
    const std::vector<float> y = p.multiply(gemm::HalfRoom::useful_bytes(p.k, p.m));
    for (std::int64_t m = 0; m < p.m; ++m)
      for (std::int64_t n = 0; n < p.n + 2; ++n)
        ASSERT_EQ(y[static_cast<std::size_t>(m * (p.n + 2) + n)], n < p.n ? p.expected(m, n) : 7.0F)
            << "case " << i << ": " << p.m << "x" << p.k << "x" << p.n << ", row " << m << ", column " << n;
    EXPECT_EQ(p.multiply(least), y) << "case " << i;
    EXPECT_EQ(p.multiply(least + random_int(random, 0, 5000) / 16 * 16), y) << "case " << i;
  }
}

TEST_F(GemmF16, LargeAndSmallNumbersKeepTheirPrecision) {
  Random random(12);
  for (const float largest : {1e-30F, 1e-6F, 1.0F, 1e5F, 1e30F}) {
    const HalfProduct p(9, 200, 33, random, largest);
    const std::vector<float> y = p.multiply(gemm::HalfRoom::useful_bytes(p.k, p.m));
    for (std::int64_t m = 0; m < p.m; ++m)
      for (std::int64_t n = 0; n < p.n; ++n) {
        double sum = p.bias[static_cast<std::size_t>(n)];
        for (std::int64_t k = 0; k < p.k; ++k)
          sum += static_cast<double>(p.a[static_cast<std::size_t>(m * p.k + k)]) *
                 p.b[static_cast<std::size_t>(k * p.n + n)];
        ASSERT_NEAR(y[static_cast<std::size_t>(m * (p.n + 2) + n)] / largest, std::fmax(sum, 0.0) / largest, 0.05)
            << largest;
      }
  }
}

TEST_F(GemmF16, InfinitiesAndNanStayInTheirRow) {
  Random random(13);
  HalfProduct p(3, 100, 20, random);
  p.a[5] = std::numeric_limits<float>::quiet_NaN();
  p.a[static_cast<std::size_t>(p.k + 7)] = std::numeric_limits<float>::infinity();
  const std::vector<float> y = p.multiply(gemm::HalfRoom::useful_bytes(p.k, p.m));
  for (std::int64_t n = 0; n < p.n; ++n) {
    EXPECT_TRUE(std::isnan(y[static_cast<std::size_t>(n)]));
    EXPECT_FALSE(std::isfinite(y[static_cast<std::size_t>(p.n + 2 + n)]) &&
                 y[static_cast<std::size_t>(p.n + 2 + n)] != 0.0F);
    EXPECT_EQ(y[static_cast<std::size_t>(2 * (p.n + 2) + n)], p.expected(2, n));
  }
}

}  // namespace
}  // namespace bantam::ops
