#include "ops/elementwise/requantize/requantize.h"

#include <gtest/gtest.h>

#include <limits>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

TEST(Requantize, RescalesAndSaturates) {
  // 0.5 = 2^30 * 2^(0 - 31) * 2^0 with a Q31 mantissa of 1/2.
  const RequantizeParams params{ElementType::kI8, 10, -5, 1 << 30, 0};
  const Outcome y = run_reference(make_case(kRequantize, params, {tensor_of<std::uint8_t>({4}, {10, 13, 0, 255})}));
  ASSERT_TRUE(y.status.ok());
  // (13 - 10) / 2 rounds up to 2; (255 - 10) / 2 rounds to 123.
  EXPECT_EQ(y.outputs[0].values<std::int8_t>(), (std::vector<std::int8_t>{-5, -3, -10, 118}));
}

TEST(Requantize, RefusesShiftsAndTypesOutsideItsContract) {
  const TestTensor x = tensor_of<std::int8_t>({1}, {0});
  const auto code = [&x](RequantizeParams params) {
    return run_reference(make_case(kRequantize, params, {x})).status.code;
  };
  EXPECT_EQ(code({ElementType::kI8, 0, 0, 1, 31}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({ElementType::kI8, 0, 0, 1, -32}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({ElementType::kI8, 0, 0, -1, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({ElementType::kI8, 0, 0, 1, 0, 2}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({ElementType::kI8, 0, 0, 1, 0, 1, 1, 31}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({ElementType::kI8, 0, 0, 1, 0, 1, std::numeric_limits<std::int32_t>::min()}),
            StatusCode::kInvalidModel);
  EXPECT_EQ(code({ElementType::kF32, 0, 0, 1, 0}), StatusCode::kUnsupported);
  EXPECT_EQ(code({}), StatusCode::kUnsupported);
}

TEST(Requantize, LeakyNumbersBelowZeroHaveTheirOwnScale) {
  // Halves above the zero point; quarters below, in the second case with the other sign.
  RequantizeParams params{ElementType::kI16, 0, 1, 1 << 30, 0, 1, 1 << 30, -1};
  const TestTensor x = tensor_of<std::int16_t>({4}, {-20000, -4, 0, 7});
  EXPECT_EQ(run_reference(make_case(kRequantize, params, {x})).outputs[0].values<std::int16_t>(),
            (std::vector<std::int16_t>{-4999, 0, 1, 5}));
  params.negative_multiplier = -params.negative_multiplier;
  EXPECT_EQ(run_reference(make_case(kRequantize, params, {x})).outputs[0].values<std::int16_t>(),
            (std::vector<std::int16_t>{5001, 2, 1, 5}));
}

TEST(Requantize, VariantsMatchReferenceToTheBit) {
  expect_variants_match_reference(
      [](Random& random) {
        constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kU8, ElementType::kI8, ElementType::kI16,
                                          ElementType::kI32};
        RequantizeParams params{
            kTypes[random() % 5], static_cast<std::int32_t>(random_int(random, -128, 255)),
            static_cast<std::int32_t>(random_int(random, -300, 300)),
            static_cast<std::int32_t>(random_int(random, 0, std::numeric_limits<std::int32_t>::max())),
            static_cast<std::int32_t>(random_int(random, 0, 1) == 0 ? random_int(random, -31, 30)
                                                                    : random_int(random, -3, 2))};
        params.leaky = static_cast<std::int32_t>(random_int(random, 0, 3) / 3);
        params.negative_multiplier = static_cast<std::int32_t>(random_int(random, -2147483647, 2147483647));
        params.negative_shift = static_cast<std::int32_t>(random_int(random, -5, 2));
        const auto dims = random_dims(random, static_cast<int>(random_int(random, 0, 3)), 0, 19);
        return make_case(kRequantize, params, {random_tensor(kTypes[random() % 5], dims, random, -40000, 40000)});
      },
      {.cases = 200, .must_cover = {kRequantize.variants[0].name}});
}

}  // namespace
}  // namespace bantam::ops
