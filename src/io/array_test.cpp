#include "io/array.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "io/testing/arrays.h"

namespace bantam::io {
namespace {

using testing::array_of;
using ::testing::ElementsAre;
using testing::values_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Half, EveryFiniteValueSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value))));
    } else {
      ASSERT_EQ(float_to_half(value), half);
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(float_to_half(1.0F + 0x1p-11F), 0x3c00);      // halfway, even below
  EXPECT_EQ(float_to_half(1.0F + 3 * 0x1p-11F), 0x3c02);  // halfway, even above
  EXPECT_EQ(float_to_half(1.0F + 0x1p-11F + 0x1p-20F), 0x3c01);
  EXPECT_EQ(float_to_half(65519.0F), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0F), 0x7c00);
  EXPECT_EQ(float_to_half(0x1p-25F), 0);
  EXPECT_EQ(float_to_half(1.5F * 0x1p-24F), 2);
  EXPECT_EQ(float_to_half(-0.0F), 0x8000);
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNan) {
  EXPECT_EQ(float_to_bfloat16(1.0F), 0x3f80);
  EXPECT_EQ(float_to_bfloat16(1.0F + 0x1p-8F), 0x3f80);
  EXPECT_EQ(float_to_bfloat16(1.0F + 3 * 0x1p-8F), 0x3f82);
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(MakeArray, RefusesWhatIsNotATensor) {
  EXPECT_FALSE(make_array(ElementType::kI4, std::vector<std::int64_t>{2}).has_value());
  EXPECT_FALSE(make_array(ElementType::kNone, std::vector<std::int64_t>{2}).has_value());
  EXPECT_FALSE(make_array(ElementType::kF32, std::vector<std::int64_t>{-1}).has_value());
  EXPECT_FALSE(make_array(ElementType::kF32, std::vector<std::int64_t>(9, 1)).has_value());
  EXPECT_FALSE(make_array(ElementType::kU8, std::vector<std::int64_t>{1 << 20, 1 << 20}).has_value());
}

TEST(MakeArray, ScalarHasOneElementAndZeroLengthNone) {
  EXPECT_EQ(make_array(ElementType::kF32, {})->data.size(), 4U);
  EXPECT_EQ(make_array(ElementType::kF32, std::vector<std::int64_t>{3, 0})->data.size(), 0U);
}

TEST(Describe, NamesTypeAndShape) {
  EXPECT_EQ(describe(testing::desc_of(ElementType::kI8, {1, 3, 20})), "i8[1,3,20]");
  EXPECT_EQ(describe(testing::desc_of(ElementType::kF32, {})), "f32[]");
}

TEST(Convert, FloatToIntegerRoundsHalfAwayAndSaturates) {
  const Array from = array_of<float>({7}, {0.5F, -0.5F, 1.4F, 300.0F, -kInfinity, std::nanf(""), -128.5F});
  EXPECT_THAT(values_of<std::int8_t>(*convert(from, ElementType::kI8)), ElementsAre(1, -1, 1, 127, -128, 0, -128));
  EXPECT_THAT(values_of<std::uint8_t>(*convert(from, ElementType::kU8)), ElementsAre(1, 0, 1, 255, 0, 0, 0));
}

TEST(Convert, WideLimitsDoNotOverflow) {
  const Array from = array_of<double>({4}, {9.3e18, -9.3e18, 1.9e19, 9007199254740993.0});
  EXPECT_THAT(values_of<std::int64_t>(*convert(from, ElementType::kI64)),
              ElementsAre(std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(),
                          std::numeric_limits<std::int64_t>::max(), 9007199254740992));
  EXPECT_THAT(values_of<std::uint64_t>(*convert(from, ElementType::kU64)),
              ElementsAre(9300000000000000000U, 0U, std::numeric_limits<std::uint64_t>::max(), 9007199254740992U));
}

TEST(Convert, IntegersSaturateWithoutGoingThroughFloat) {
  const Array from = array_of<std::int64_t>({3}, {(std::int64_t{1} << 62) + 1, -5, 70000});
  EXPECT_THAT(values_of<std::uint64_t>(*convert(from, ElementType::kU64)), ElementsAre((1ULL << 62) + 1, 0U, 70000U));
  EXPECT_THAT(values_of<std::int16_t>(*convert(from, ElementType::kI16)), ElementsAre(32767, -5, 32767));
}

TEST(Convert, BoolIsZeroOrOne) {
  const Array from = array_of<float>({3}, {0.0F, 0.25F, -2.0F});
  const auto bools = convert(from, ElementType::kBool);
  ASSERT_TRUE(bools.has_value());
  EXPECT_THAT(values_of<std::int32_t>(*convert(*bools, ElementType::kI32)), ElementsAre(0, 1, 1));
}

TEST(Convert, SixteenBitFloatsCarryTheirValues) {
  const Array from = array_of<float>({3}, {1.5F, -2.0F, 100000.0F});
  const auto half = convert(from, ElementType::kF16);
  ASSERT_TRUE(half.has_value());
  EXPECT_THAT(values_of<double>(*convert(*half, ElementType::kF64)),
              ElementsAre(1.5, -2.0, std::numeric_limits<double>::infinity()));
  EXPECT_THAT(values_of<std::int32_t>(*convert(*convert(from, ElementType::kBF16), ElementType::kI32)),
              ElementsAre(2, -2, 99840));
}

TEST(Convert, RefusesNibbles) { EXPECT_FALSE(convert(array_of<float>({1}, {1.0F}), ElementType::kI4).has_value()); }

TEST(Quantize, RoundsHalfAwayFromZeroThenAddsTheZeroPoint) {
  const Array real = array_of<float>({6}, {0.0F, 0.25F, -0.25F, 1.0F, 1000.0F, -1000.0F});
  EXPECT_THAT(values_of<std::int8_t>(*quantize(real, ElementType::kI8, {0.5F, -3})),
              ElementsAre(-3, -2, -4, -1, 127, -128));
  EXPECT_THAT(values_of<std::uint8_t>(*quantize(real, ElementType::kU8, {0.5F, 128})),
              ElementsAre(128, 129, 127, 130, 255, 0));
}

TEST(Quantize, RefusesUnusableScalesAndTypes) {
  const Array real = array_of<float>({1}, {1.0F});
  EXPECT_FALSE(quantize(real, ElementType::kI8, {0.0F, 0}).has_value());
  EXPECT_FALSE(quantize(real, ElementType::kI8, {-1.0F, 0}).has_value());
  EXPECT_FALSE(quantize(real, ElementType::kI8, {std::nanf(""), 0}).has_value());
  EXPECT_FALSE(quantize(real, ElementType::kF16, {1.0F, 0}).has_value());
  EXPECT_FALSE(quantize(array_of<double>({1}, {1.0}), ElementType::kI8, {1.0F, 0}).has_value());
}

}  // namespace
}  // namespace bantam::io
