#include "ops/nn/gemm/gemm_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "hwy/targets.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using testing::Random;
using testing::random_int;

std::vector<float> random_floats(std::size_t n, Random& random) {
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(random_int(random, -1000, 1000)) / 1000.0F;
  return values;
}

struct FloatProduct {
  std::int64_t m, k, n;
  std::vector<float> a, b, bias;
  std::vector<float> panels;

  FloatProduct(std::int64_t rows, std::int64_t depth, std::int64_t columns, Random& random)
      : m(rows),
        k(depth),
        n(columns),
        a(random_floats(static_cast<std::size_t>(m * k), random)),
        b(random_floats(static_cast<std::size_t>(k * n), random)),
        bias(random_floats(static_cast<std::size_t>(n), random)),
        panels(static_cast<std::size_t>(gemm::packed_floats(k, n))) {
    gemm::pack_panels(b.data(), k, n, n, 1, 0, gemm::panel_count(n), panels.data());
  }

  /// Rows of y are two elements longer than n; those keep 7.
  std::vector<float> result() const { return std::vector<float>(static_cast<std::size_t>(m * (n + 2)), 7.0F); }

  /// In one call, or in two that meet at row `cut` of b.
  std::vector<float> multiply(std::int64_t cut, const gemm::LeftRows& form, bool backward = false) const {
    std::vector<float> y = result();
    const Activation relu{UnaryFunction::kRelu, 0, 0};
    gemm::RightPanels right{
        .data = panels.data(), .n = n, .first = 0, .last = gemm::panel_count(n), .k = k, .backward = backward};
    gemm::LeftRows left = form;
    left.data = a.data();
    left.rows = m;
    left.row_stride = k;
    if (cut > 0) {
      left.length = cut;
      gemm::multiply(left, right, {y.data(), n + 2, bias.data(), relu, false, false});
      left.data += cut;
      left.length = k - cut;
      right.first_k = cut;
    }
    gemm::multiply(left, right, {y.data(), n + 2, bias.data(), relu, cut > 0, true});
    return y;
  }
};

TEST(GemmF32, ChainsAreTheSameHoweverTheyAreCut) {
  Random random(7);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    for (int i = 0; i < 24; ++i) {
      const bool deep = i == 0;  // enough to be computed in pieces
      const bool few = i % 2 != 0;
      const FloatProduct p(deep ? 26 : random_int(random, 1, few ? 8 : 30), deep ? 1600 : 8 * random_int(random, 1, 6),
                           random_int(random, 1, few ? 170 : 70), random);
      const std::vector<float> y = p.multiply(0, {.length = p.k});
      for (std::int64_t m = 0; m < p.m; ++m)
        for (std::int64_t n = 0; n < p.n + 2; ++n) {
          double sum = n < p.n ? p.bias[static_cast<std::size_t>(n)] : 7.0;
          for (std::int64_t k = 0; k < p.k && n < p.n; ++k)
            sum += static_cast<double>(p.a[static_cast<std::size_t>(m * p.k + k)]) *
                   p.b[static_cast<std::size_t>(k * p.n + n)];
          ASSERT_NEAR(y[static_cast<std::size_t>(m * (p.n + 2) + n)], std::max(sum, 0.0), 1e-3)
              << "round " << i << ", target " << target << ", row " << m << ", column " << n;
        }
      EXPECT_EQ(y, p.multiply(0, {.length = p.k}, true));
      EXPECT_EQ(y, p.multiply(p.k / 2 + 1, {}));
      EXPECT_EQ(y, p.multiply(0, {.segments = 4, .segment_stride = p.k / 4, .length = p.k / 4}));
      EXPECT_EQ(
          y,
          p.multiply(
              0, {.outer = 2, .outer_stride = p.k / 2, .segments = 2, .segment_stride = p.k / 4, .length = p.k / 4}));
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// Of every number of panels that a group and the last one may have, whole and not, with a bias that ends with them.
TEST(GemmF32, ASingleRowGetsTheBitsThatItGetsAmongOthers) {
  Random random(8);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    for (std::int64_t panels = 1; panels <= 17; ++panels) {
      for (const std::int64_t missing : {0, 1, 11}) {
        const FloatProduct many(7, 24, panels * gemm::kPanel - missing, random);
        FloatProduct one = many;
        one.m = 1;
        std::vector<float> expected = many.multiply(0, {.length = many.k});
        expected.resize(one.result().size());
        for (const bool backward : {false, true})
          for (const std::int64_t cut : {0, 9})
            EXPECT_EQ(expected, one.multiply(cut, {.length = one.k}, backward))
                << panels << " panels less " << missing << " columns, target " << target << ", cut at " << cut;
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(GemmF32, VectorsPackTheSamePanels) {
  constexpr unsigned kSeed = 5;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    for (int i = 0; i < 60; ++i) {
      const std::int64_t k = random_int(random, 1, 21);
      const std::int64_t n = random_int(random, 1, 50);
      const std::int64_t gap = random_int(random, 0, 3);
      const bool by_columns = i % 3 == 0;
      const bool sparse = i % 3 == 2;  // neither rows nor columns are contiguous
      const std::int64_t k_stride = by_columns ? 1 : sparse ? 2 * n + gap : n + gap;
      const std::int64_t n_stride = by_columns ? k + gap : sparse ? 2 : 1;
      const auto size = static_cast<std::size_t>((k - 1) * k_stride + (n - 1) * n_stride + 1);
      const std::vector<float> b = random_floats(size, random);
      const std::int64_t panels = gemm::panel_count(n);
      const std::int64_t first = random_int(random, 0, panels - 1);
      std::vector<float> expected(static_cast<std::size_t>(gemm::packed_floats(k, n)), 7.0F);
      std::vector<float> packed = expected;
      gemm::pack_panels(b.data(), k, n, k_stride, n_stride, first, panels, expected.data());
      gemm::pack_panels_simd(b.data(), k, n, k_stride, n_stride, first, panels, packed.data());
      ASSERT_EQ(packed, expected) << "round " << i << ", target " << target;
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace
}  // namespace bantam::ops
