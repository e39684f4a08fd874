#include "ops/nn/svdf/svdf.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TEST(Svdf, KeepsTheLastFeaturesOfEachFilter) {
  // Two units of two filters with a memory of three.
  const Outcome y = run_reference(make_case(
      kSvdf, SvdfParams{.rank = 2, .activation = {UnaryFunction::kRelu}},
      {tensor_of<float>({1, 4}, {10, 20, 30, 40}),
       tensor_of<float>({1, 12}, {1, 2, 3, 4, 5, 6, 7, 8, 9, -10, -11, -12}),
       tensor_of<float>({4, 3}, {1, 1, 1, 1, 10, 100, 0, 0, 1, 0, 1, 0}), tensor_of<float>({2}, {0.5F, -90})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_EQ(y.outputs[1].values<float>(), (std::vector<float>{2, 3, 10, 5, 6, 20, 8, 9, 30, -11, -12, 40}));
  EXPECT_EQ(y.outputs[0].values<float>(), (std::vector<float>{0.5F + 15 + 5 + 60 + 2000, 0}));
}

TEST(Svdf, IntegersAreScaledOnce) {
  // The sum is 7 + 3 * 5 + 4 * 6 = 46; half of it is 23; plus 1.
  const Outcome y =
      run_reference(make_case(kSvdf, SvdfParams{.output_zero_point = 1, .multiplier = 1 << 30, .shift = 0},
                              {tensor_of<std::int16_t>({1, 1}, {6}), tensor_of<std::int16_t>({1, 2}, {-3000, 5}),
                               tensor_of<std::int16_t>({1, 2}, {3, 4}), tensor_of<std::int32_t>({1}, {7})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_EQ(y.outputs[0].values<std::int8_t>(), (std::vector<std::int8_t>{24}));
  EXPECT_EQ(y.outputs[1].values<std::int16_t>(), (std::vector<std::int16_t>{5, 6}));
}

TEST(Svdf, StoredFeaturesWrapWithTheirZeroPoint) {
  // 120 + 10 is stored as -126 and read as -136.
  const Outcome y =
      run_reference(make_case(kSvdf, SvdfParams{.state_zero_point = 10, .multiplier = 1 << 30, .shift = 0},
                              {tensor_of<std::int8_t>({1, 1}, {120}), tensor_of<std::int8_t>({1, 2}, {0, 11}),
                               tensor_of<std::int8_t>({1, 2}, {2, 1})}));
  EXPECT_EQ(y.outputs[1].values<std::int8_t>(), (std::vector<std::int8_t>{11, -126}));
  EXPECT_EQ(y.outputs[0].values<std::int8_t>(), (std::vector<std::int8_t>{(2 - 136) / 2}));
}

OpCase random_case(Random& random) {
  constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kI8, ElementType::kI16};
  const ElementType type = kTypes[random_int(random, 0, 2)];
  const bool is_float = type == ElementType::kF32;
  const std::int64_t b = random_int(random, 0, 3);
  const std::int64_t rank = random_int(random, 1, 3);
  const std::int64_t units = random_int(random, 0, 5);
  const std::int64_t memory = random_int(random, 1, 24);
  SvdfParams p{.rank = static_cast<std::int32_t>(rank)};
  p.state_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
  p.output_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
  p.multiplier = 1518500250;
  p.shift = static_cast<std::int32_t>(random_int(random, -31, 30));
  const auto draw = [&](ElementType of, const std::vector<std::int64_t>& dims) {
    return random_tensor(of, dims, random, is_float ? -1 : -100, is_float ? 1 : 100);
  };
  const std::int64_t filters = rank * units;
  std::vector<Operand> operands{draw(type, {b, filters}), draw(type, {b, filters * memory}),
                                constant(draw(type, {filters, memory}))};
  if (random_int(random, 0, 1) == 0)
    operands.emplace_back(draw(is_float ? ElementType::kF32 : ElementType::kI32, {units}));
  return make_case(kSvdf, p, std::move(operands));
}

TEST(Svdf, VariantsMatchReference) {
  std::vector<std::string_view> all;
  for (const KernelVariant& variant : kSvdf.variants) all.push_back(variant.name);
  expect_variants_match_reference(random_case, {.must_cover = all});
}

TEST(Svdf, RefusesHostileShapesAndParameters) {
  std::vector<TensorDesc> outputs;
  const auto tensor = [](ElementType type, std::vector<std::int64_t> dims) {
    return TestTensor(dense_desc(type, std::move(dims)));
  };
  const auto accepted = [&](const SvdfParams& p, ElementType type, std::vector<std::int64_t> state,
                            std::vector<std::int64_t> weights, std::vector<std::int64_t> bias) {
    return infer_case(make_case(kSvdf, p,
                                {tensor(type, {1, 4}), tensor(type, std::move(state)), tensor(type, std::move(weights)),
                                 tensor(type == ElementType::kF32 ? type : ElementType::kI32, std::move(bias))}),
                      &outputs)
        .ok();
  };
  constexpr ElementType kI8 = ElementType::kI8;
  EXPECT_TRUE(accepted({.rank = 2}, kI8, {1, 12}, {4, 3}, {2}));
  EXPECT_TRUE(accepted({.rank = 2}, ElementType::kF32, {1, 12}, {4, 3}, {2}));
  EXPECT_FALSE(accepted({.rank = 2}, ElementType::kU8, {1, 12}, {4, 3}, {2}));
  EXPECT_FALSE(accepted({.rank = 0}, kI8, {1, 12}, {4, 3}, {4}));
  EXPECT_FALSE(accepted({.rank = 3}, kI8, {1, 12}, {4, 3}, {1}));
  EXPECT_FALSE(accepted({.rank = 2}, kI8, {1, 11}, {4, 3}, {2}));
  EXPECT_FALSE(accepted({.rank = 2}, kI8, {1, 0}, {4, 0}, {2}));
  EXPECT_FALSE(accepted({.rank = 2}, kI8, {1, 12}, {3, 4}, {2}));
  EXPECT_FALSE(accepted({.rank = 2}, kI8, {1, 12}, {4, 3}, {4}));
  EXPECT_FALSE(accepted({.rank = 2, .state_zero_point = 128}, kI8, {1, 12}, {4, 3}, {2}));
  EXPECT_FALSE(accepted({.rank = 2, .output_zero_point = -129}, kI8, {1, 12}, {4, 3}, {2}));
  EXPECT_FALSE(accepted({.rank = 2, .multiplier = -1}, kI8, {1, 12}, {4, 3}, {2}));
  EXPECT_FALSE(accepted({.rank = 2, .shift = 31}, kI8, {1, 12}, {4, 3}, {2}));
}

}  // namespace
}  // namespace bantam::ops
