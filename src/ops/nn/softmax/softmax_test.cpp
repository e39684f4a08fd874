#include "ops/nn/softmax/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TEST(Softmax, GivesTheStandardsExamples) {
  // ONNX test_softmax_example and test_softmax_large_number, test_logsoftmax_example_1.
  const Outcome y = run_reference(make_case(kSoftmax, SoftmaxParams{}, {tensor_of<float>({1, 3}, {-1, 0, 1})}));
  const float expected[] = {0.09003058F, 0.24472848F, 0.66524094F};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(y.outputs[0].values<float>()[i], expected[i], 1e-7);
  const Outcome large = run_reference(
      make_case(kSoftmax, SoftmaxParams{}, {tensor_of<float>({2, 4}, {0, 1, 2, 3, 10000, 10001, 10002, 10003})}));
  const float rows[] = {0.032058604F, 0.08714432F, 0.23688284F, 0.6439143F};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(large.outputs[0].values<float>()[i], rows[i % 4], 1e-7);
  const Outcome log =
      run_reference(make_case(kSoftmax, SoftmaxParams{.log = 1}, {tensor_of<float>({1, 3}, {-1, 0, 1})}));
  const float logs[] = {-2.4076061F, -1.407606F, -0.407606F};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(log.outputs[0].values<float>()[i], logs[i], 1e-6);
}

TEST(Softmax, KeepsDoublePrecision) {
  const Outcome y = run_reference(make_case(kSoftmax, SoftmaxParams{}, {tensor_of<double>({2}, {0, 1e-12})}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_NEAR(y.outputs[0].values<double>()[1] - 0.5, 2.5e-13, 1e-15);
}

TEST(Softmax, VariantsMatchReferenceOverAnyAxis) {
  expect_variants_match_reference(
      [](Random& random) {
        const int rank = static_cast<int>(random_int(random, 1, 4));
        const SoftmaxParams params{.axis = static_cast<std::int32_t>(random_int(random, -rank, rank - 1)),
                                   .log = static_cast<std::int32_t>(random_int(random, 0, 1))};
        return make_case(kSoftmax, params,
                         {random_tensor(ElementType::kF32, random_dims(random, rank, 0, 21), random, -30, 30)});
      },
      {.cases = 200});
}

TEST(Softmax, ShortRowsFillManyTiles) {
  expect_variants_match_reference(
      [](Random& random) {
        const auto size = random_int(random, 1, 18);
        return make_case(kSoftmax, SoftmaxParams{},
                         {random_tensor(ElementType::kF32, {random_int(random, 1, 3000), size}, random, -9, 9)});
      },
      {.cases = 30});
}

TEST(Softmax, FewColumnsShareVectorsWithTheirRows) {
  for (std::int64_t columns = 1; columns <= 40; ++columns)
    expect_variants_match_reference(
        [&](Random& random) {
          const SoftmaxParams params{.axis = 1, .log = static_cast<std::int32_t>(random_int(random, 0, 1))};
          const std::int64_t rows = random_int(random, 1, random_int(random, 0, 1) == 0 ? 9 : 120);
          return make_case(
              kSoftmax, params,
              {random_tensor(ElementType::kF32, {random_int(random, 1, 70), rows, columns}, random, -30, 30)});
        },
        {.cases = 8, .seed = static_cast<std::uint64_t>(100 * columns)});
}

TEST(Softmax, AMaskedColumnLeavesItsNeighboursAlone) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  constexpr std::size_t kRows = 33;
  for (const std::size_t columns : {2U, 3U, 5U, 8U}) {
    std::vector<float> x(kRows * columns, 1.0F);
    for (std::size_t i = 0; i < kRows; ++i) x[i * columns + 1] = kMinusInfinity;
    const OpCase op_case =
        make_case(kSoftmax, SoftmaxParams{.axis = 0},
                  {tensor_of<float>({static_cast<std::int64_t>(kRows), static_cast<std::int64_t>(columns)}, x)});
    for (const KernelVariant& variant : kSoftmax.variants) {
      const std::vector<float> y = run_variant(op_case, variant).outputs[0].values<float>();
      for (std::size_t i = 0; i < y.size(); ++i) {
        if (i % columns == 1) {
          EXPECT_TRUE(std::isnan(y[i])) << variant.name;
        } else {
          EXPECT_FLOAT_EQ(y[i], 1.0F / kRows) << variant.name;
        }
      }
    }
  }
}

TEST(Softmax, LongRowsEndAnywhere) {
  expect_variants_match_reference(
      [](Random& random) {
        const SoftmaxParams params{.log = static_cast<std::int32_t>(random_int(random, 0, 1))};
        return make_case(kSoftmax, params,
                         {random_tensor(ElementType::kF32, {3, random_int(random, 17, 300)}, random, -30, 30)});
      },
      {.cases = 60});
}

TEST(Softmax, MaskedTermsVanishAndFullyMaskedRowsAreNotNumbers) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  for (const std::int64_t size : {3, 40}) {
    std::vector<float> x(static_cast<std::size_t>(2 * size), kMinusInfinity);
    x[0] = x[1] = 2;
    const OpCase op_case = make_case(kSoftmax, SoftmaxParams{}, {tensor_of<float>({2, size}, x)});
    for (const KernelVariant& variant : kSoftmax.variants) {
      const std::vector<float> y = run_variant(op_case, variant).outputs[0].values<float>();
      EXPECT_FLOAT_EQ(y[0], 0.5F) << variant.name;
      EXPECT_EQ(y[2], 0.0F) << variant.name;
      EXPECT_TRUE(std::isnan(y.back())) << variant.name;
    }
  }
}

TEST(Softmax, RefusesHostileParameters) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<float>({2}, {1, 2});
  EXPECT_FALSE(infer_case(make_case(kSoftmax, SoftmaxParams{.axis = 1}, {x}), &outputs).ok());
  EXPECT_FALSE(infer_case(make_case(kSoftmax, SoftmaxParams{.axis = -2}, {x}), &outputs).ok());
  EXPECT_FALSE(infer_case(make_case(kSoftmax, SoftmaxParams{.log = 2}, {x}), &outputs).ok());
  EXPECT_FALSE(infer_case(make_case(kSoftmax, SoftmaxParams{}, {tensor_of<float>({}, {1})}), &outputs).ok());
  EXPECT_FALSE(infer_case(make_case(kSoftmax, SoftmaxParams{}, {tensor_of<std::int32_t>({1}, {1})}), &outputs).ok());
}

}  // namespace
}  // namespace bantam::ops
