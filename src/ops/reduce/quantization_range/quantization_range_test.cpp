#include "ops/reduce/quantization_range/quantization_range.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

struct Quantization {
  float scale;
  int zero_point;
  bool operator==(const Quantization&) const = default;
};

/// The same of every variant.
Quantization quantization(const std::vector<float>& numbers) {
  const OpCase op_case =
      make_case(kQuantizationRange, {tensor_of<float>({static_cast<std::int64_t>(numbers.size())}, numbers)});
  Quantization first{};
  for (const KernelVariant& variant : kQuantizationRange.variants) {
    const Outcome y = run_variant(op_case, variant);
    const Quantization now{y.outputs[0].values<float>()[0], y.outputs[1].values<std::uint8_t>()[0]};
    if (&variant == &kQuantizationRange.variants[0]) first = now;
    EXPECT_EQ(now, first) << variant.name;
  }
  return first;
}

TEST(QuantizationRange, IsWhatTheExamplesOfTheStandardSay) {
  EXPECT_EQ(quantization({0, 2, -3, -2.5F, 1.34F, 0.5F}), (Quantization{5.0F / 255.0F, 153}));
  EXPECT_EQ(quantization({-1.0F, -2.1F, -1.3F, -2.5F, -3.34F, -4.0F}), (Quantization{4.0F / 255.0F, 255}));
  EXPECT_EQ(quantization({1, 2.1F, 1.3F, 2.5F, 3.34F, 4, 1.5F, 2.6F, 3.9F, 4, 3, 2.345F}),
            (Quantization{4.0F / 255.0F, 0}));
}

TEST(QuantizationRange, TakesOneForZerosAndLeavesOutWhatIsNoNumber) {
  EXPECT_EQ(quantization({}), (Quantization{1, 0}));
  EXPECT_EQ(quantization({0, -0.0F, NAN}), (Quantization{1, 0}));
  std::vector<float> many(100, NAN);
  many[3] = -1.0F;
  many[97] = 4.0F;
  EXPECT_EQ(quantization(many), (Quantization{5.0F / 255.0F, 51}));
  EXPECT_EQ(quantization({-INFINITY, 1}), (Quantization{INFINITY, 0}));
}

}  // namespace
}  // namespace bantam::ops
