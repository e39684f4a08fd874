#include "ops/reduce/topk/topk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

TEST(Topk, SortsAndPrefersLowerIndices) {
  const TestTensor x = tensor_of<float>({5}, {1, 3, 2, 3, 0});
  const Outcome top = run_reference(make_case(kTopk, TopkParams{0, 3, 1, ElementType::kI64}, {x}));
  ASSERT_TRUE(top.status.ok());
  EXPECT_EQ(top.outputs[0].values<float>(), (std::vector<float>{3, 3, 2}));
  EXPECT_EQ(top.outputs[1].values<std::int64_t>(), (std::vector<std::int64_t>{1, 3, 2}));
  const Outcome low = run_reference(make_case(kTopk, TopkParams{0, 2, 0, ElementType::kI32}, {x}));
  EXPECT_EQ(low.outputs[1].values<std::int32_t>(), (std::vector<std::int32_t>{4, 0}));
}

TEST(Topk, RefusesMoreThanThereIs) {
  const TestTensor x = tensor_of<float>({2}, {1, 3});
  EXPECT_EQ(run_reference(make_case(kTopk, TopkParams{0, 3, 1, ElementType::kI64}, {x})).status.code,
            StatusCode::kInvalidModel);
  EXPECT_EQ(run_reference(make_case(kTopk, TopkParams{0, -1, 1, ElementType::kI64}, {x})).status.code,
            StatusCode::kInvalidModel);
}

TEST(Topk, AgreesWithAStableSort) {
  Random random(11);
  for (int round = 0; round < 100; ++round) {
    const auto n = static_cast<std::size_t>(random_int(random, 1, 40));
    const auto k = static_cast<std::int32_t>(random_int(random, 0, static_cast<std::int64_t>(n)));
    const TestTensor x = random_tensor(ElementType::kI8, {static_cast<std::int64_t>(n)}, random, -5, 5);
    const auto values = x.values<std::int8_t>();
    std::vector<std::int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
      return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
    });
    order.resize(static_cast<std::size_t>(k));
    const Outcome y = run_reference(make_case(kTopk, TopkParams{-1, k, 1, ElementType::kI32}, {x}));
    ASSERT_TRUE(y.status.ok());
    EXPECT_EQ(y.outputs[1].values<std::int32_t>(), order);
  }
}

TEST(Topk, DistinguishesDoublesThatAreEqualAsFloats) {
  const TestTensor x = tensor_of<double>({3}, {1.0, 1.0 + 0x1p-40, 1.0 - 0x1p-40});
  const Outcome top = run_reference(make_case(kTopk, TopkParams{0, 3, 1, ElementType::kI64}, {x}));
  ASSERT_TRUE(top.status.ok());
  EXPECT_EQ(top.outputs[1].values<std::int64_t>(), (std::vector<std::int64_t>{1, 0, 2}));
}

TEST(Topk, WorksAlongEveryAxis) {
  expect_variants_match_reference(
      [](Random& random) {
        const auto dims = random_dims(random, 3, 1, 12);
        const auto axis = static_cast<std::int32_t>(random_int(random, 0, 2));
        const auto k = static_cast<std::int32_t>(random_int(random, 0, dims[static_cast<std::size_t>(axis)]));
        return make_case(kTopk, TopkParams{axis, k, 1, ElementType::kI64},
                         {random_tensor(ElementType::kF32, dims, random)});
      },
      {.cases = 40});
}

TEST(Topk, LongLinesWithManyEqualElements) {
  expect_variants_match_reference(
      [](Random& random) {
        const auto length = random_int(random, 1, 300);
        const auto k = static_cast<std::int32_t>(random_int(random, 1, length));
        const TestTensor whole = random_tensor(ElementType::kI32, {2, length}, random, -9, 9);
        std::vector<float> values;
        for (const double value : whole.to_doubles()) values.push_back(value == 3 ? NAN : static_cast<float>(value));
        return make_case(kTopk, TopkParams{1, k, static_cast<std::int32_t>(random() % 2), ElementType::kI32},
                         {tensor_of<float>({2, length}, values)});
      },
      {.cases = 60, .must_cover = {kTopk.variants[0].name}});
}

}  // namespace
}  // namespace bantam::ops
