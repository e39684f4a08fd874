#include "ops/elementwise/lookup8/lookup8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/elementwise/lookup8/line.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

TEST(Lookup8, IndexesTheTableByBitPattern) {
  std::vector<std::uint8_t> table(256);
  std::iota(table.rbegin(), table.rend(), std::uint8_t{0});
  const Outcome y = run_reference(make_case(
      kLookup8, {tensor_of<std::int8_t>({2, 2}, {0, 1, -1, -128}), constant(tensor_of<std::uint8_t>({256}, table))}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(y.outputs[0].values<std::uint8_t>(), (std::vector<std::uint8_t>{255, 254, 0, 127}));
}

TEST(Lookup8, RefusesATableOfAnotherSize) {
  Random random(1);
  const OpCase op_case = make_case(kLookup8, {random_tensor(ElementType::kI8, {3}, random),
                                              constant(random_tensor(ElementType::kI8, {255}, random))});
  EXPECT_EQ(run_reference(op_case).status.code, StatusCode::kInvalidModel);
}

TEST(Lookup8, VariantsMatchReference) {
  expect_variants_match_reference([](Random& random) {
    const ElementType types[] = {ElementType::kI8, ElementType::kU8};
    const auto dims = random_dims(random, static_cast<int>(random_int(random, 0, 4)), 0, 11);
    return make_case(kLookup8, {random_tensor(types[random() % 2], dims, random, -128, 255),
                                constant(random_tensor(types[random() % 2], {256}, random, -128, 255))});
  });
}

// Several short rows that lie apart are looked up together.
TEST(Lookup8, VariantsMatchReferenceOnManyShortRows) {
  expect_variants_match_reference(
      [](Random& random) {
        const std::vector<std::int64_t> dims{random_int(random, 1, 90), random_int(random, 1, 70)};
        return make_case(kLookup8, {random_tensor(ElementType::kI8, dims, random, -128, 127),
                                    constant(random_tensor(ElementType::kI8, {256}, random, -128, 127))});
      },
      {.cases = 150});
}

/// round(scale * (x - x_zero)) + y_zero within limits, as a change of scale gives it; rarely one entry is another.
TestTensor change_of_scale(ElementType from, ElementType to, Random& random) {
  const int least = from == ElementType::kI8 ? -128 : 0;
  const int low = to == ElementType::kI8 ? -128 : 0;
  const double scale = std::exp2(0.001 * static_cast<double>(random_int(random, -6000, 2000)));
  const std::int64_t x_zero = random_int(random, least, least + 255);
  const std::int64_t y_zero = random_int(random, low, low + 255);
  const bool rectified = random() % 2 == 0;
  std::vector<std::int64_t> table(256);
  for (int x = least; x < least + 256; ++x) {
    const auto y = std::llrint(scale * static_cast<double>(x - x_zero)) + y_zero;
    table[static_cast<std::size_t>(x) & 255U] = std::clamp<std::int64_t>(y, rectified ? y_zero : low, low + 255);
  }
  if (random() % 4 == 0) table[random() % 256] = random_int(random, low, low + 255);
  if (to == ElementType::kI8) return tensor_of<std::int8_t>({256}, {table.begin(), table.end()});
  return tensor_of<std::uint8_t>({256}, {table.begin(), table.end()});
}

// So many bytes that it is worth finding the line.
TEST(Lookup8, VariantsMatchReferenceOnChangesOfScale) {
  expect_variants_match_reference(
      [](Random& random) {
        const ElementType types[] = {ElementType::kI8, ElementType::kU8};
        const ElementType from = types[random() % 2];
        const std::vector<std::int64_t> dims{random_int(random, 40, 200), random_int(random, 1, 150)};
        return make_case(kLookup8, {random_tensor(from, dims, random, -128, 255),
                                    constant(change_of_scale(from, types[random() % 2], random))});
      },
      {.cases = 300});
}

TEST(Line, IsFoundInRoundedAndLimitedChangesOfScaleOnly) {
  std::uint8_t rising[256];
  std::uint8_t falling[256];
  std::uint8_t bent[256];
  for (int x = 0; x < 256; ++x) {
    rising[x] = static_cast<std::uint8_t>(std::clamp(std::lrint(0.73 * (x - 40)) + 7, 7L, 150L));
    falling[x] = static_cast<std::uint8_t>(255 - x);
    bent[x] = static_cast<std::uint8_t>(x < 128 ? x / 2 : 64 + (x - 128));
  }
  const Line line = find_line(rising, 0, 0);
  ASSERT_TRUE(line.exists());
  EXPECT_NEAR(line.slope, 0.73 * Line::kOne, 0.01 * Line::kOne);
  EXPECT_EQ(line.maximum, 150);
  EXPECT_FALSE(find_line(falling, 0, 0).exists());
  EXPECT_FALSE(find_line(bent, 0, 0).exists());
  // The same numbers, of signed bytes.
  std::uint8_t of_signed[256];
  for (int x = 0; x < 256; ++x) of_signed[x ^ 0x80] = rising[x] ^ 0x80;
  EXPECT_EQ(find_line(of_signed, 0x80, 0x80).slope, line.slope);
}

}  // namespace
}  // namespace bantam::ops
