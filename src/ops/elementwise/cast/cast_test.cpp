#include "ops/elementwise/cast/cast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

template <typename To, typename From>
std::vector<To> cast(const std::vector<From>& x) {
  const OpCase op_case =
      make_case(kCast, CastParams{kElementTypeOf<To>}, {tensor_of<From>({static_cast<std::int64_t>(x.size())}, x)});
  return run_variant(op_case,
                     kCast.variants[variant_supports(op_case, kCast.variants[0]) ? 0 : kCast.variants.size() - 1])
      .outputs[0]
      .template values<To>();
}

TEST(Cast, TruncatesAndSaturatesFloats) {
  EXPECT_EQ((cast<std::int8_t, float>({-1.9F, 1.9F, 300.0F, -1e30F, NAN, INFINITY})),
            (std::vector<std::int8_t>{-1, 1, 127, -128, 0, 127}));
  EXPECT_EQ((cast<std::uint8_t, float>({-1.0F, 255.5F, NAN})), (std::vector<std::uint8_t>{0, 255, 0}));
  EXPECT_EQ((cast<std::int32_t, float>({3e9F, -3e9F, -7.5F, 2147483520.0F})),
            (std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::max(),
                                       std::numeric_limits<std::int32_t>::min(), -7, 2147483520}));
  EXPECT_EQ(
      (cast<std::int64_t, double>({1e30, -1e30})),
      (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}));
}

TEST(Cast, WrapsIntegersAndTestsForTruth) {
  EXPECT_EQ((cast<std::int8_t, std::int32_t>({255, 128, -129})), (std::vector<std::int8_t>{-1, -128, 127}));
  EXPECT_EQ((cast<Bool8, float>({0.0F, 0.5F, -2.0F})), (std::vector<Bool8>{{0}, {1}, {1}}));
  EXPECT_EQ((cast<float, Bool8>({{0}, {7}})), (std::vector<float>{0.0F, 1.0F}));
}

TEST(Cast, RoundsHalvesToEven) {
  const auto bits = [](float x) { return to_half(x).bits; };
  EXPECT_EQ(bits(1.0F), 0x3c00);
  EXPECT_EQ(bits(65519.0F), 0x7bff);
  EXPECT_EQ(bits(65520.0F), 0x7c00);
  EXPECT_EQ(bits(0x1p-25F), 0x0000);         // half of the smallest subnormal: a tie, to even
  EXPECT_EQ(bits(0x1.8p-24F), 0x0002);       // a tie between 1 and 2 units
  EXPECT_EQ(bits(1.0F + 0x1p-11F), 0x3c00);  // ties
  EXPECT_EQ(bits(1.0F + 0x1.8p-10F), 0x3c02);
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-8F).bits, 0x3f80);
  for (std::uint32_t b = 0; b < 0x10000; ++b) {
    const Half h{static_cast<std::uint16_t>(b)};
    if (std::isnan(to_f32(h))) continue;
    ASSERT_EQ(to_half(to_f32(h)).bits, h.bits) << b;
  }
}

TEST(Cast, RefusesNibblesAndNothing) {
  Random random(1);
  const auto code = [&random](ElementType from, ElementType to) {
    return run_reference(make_case(kCast, CastParams{to}, {random_tensor(from, {2}, random)})).status.code;
  };
  EXPECT_EQ(code(ElementType::kI4, ElementType::kF32), StatusCode::kUnsupported);
  EXPECT_EQ(code(ElementType::kF32, ElementType::kI4), StatusCode::kUnsupported);
  EXPECT_EQ(code(ElementType::kF32, ElementType::kNone), StatusCode::kUnsupported);
}

TEST(Cast, VariantsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        const bool from_f32 = random() % 2 == 0;
        const auto other = static_cast<ElementType>(random_int(random, 1, static_cast<int>(ElementType::kBool)));
        const auto dims = random_dims(random, static_cast<int>(random_int(random, 0, 4)), 0, 13);
        TestTensor x = random_tensor(from_f32 ? ElementType::kF32 : other, dims, random, -300, 300);
        if (random_int(random, 0, 3) == 0) fill_garbage(x, random);
        return make_case(kCast, CastParams{from_f32 ? other : ElementType::kF32}, {x});
      },
      {.cases = 300, .must_cover = {kCast.variants[0].name}});
}

}  // namespace
}  // namespace bantam::ops
