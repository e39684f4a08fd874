#include "ops/data/scatter_nd/scatter_nd.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

std::vector<float> scatter(ScatterReduction reduction, const TestTensor& x, const TestTensor& indices,
                           const TestTensor& updates) {
  const Outcome y =
      run_reference(make_case(kScatterNd, ScatterNdParams{.reduction = reduction}, {x, indices, updates}));
  EXPECT_TRUE(y.status.ok()) << y.status.message;
  return y.outputs.empty() ? std::vector<float>{} : y.outputs[0].values<float>();
}

TEST(ScatterNd, ReplacesElementsAndSlices) {
  using V = std::vector<float>;
  const TestTensor x = tensor_of<float>({4}, {1, 2, 3, 4});
  EXPECT_EQ(
      scatter(ScatterReduction::kNone, x, tensor_of<std::int64_t>({2, 1}, {3, -4}), tensor_of<float>({2}, {9, 8})),
      (V{8, 2, 3, 9}));
  const TestTensor m = tensor_of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(scatter(ScatterReduction::kNone, m, tensor_of<std::int64_t>({1, 1}, {1}), tensor_of<float>({1, 2}, {7, 6})),
            (V{1, 2, 7, 6}));
}

TEST(ScatterNd, ReductionsAccumulateOverRepeatedIndices) {
  using V = std::vector<float>;
  const TestTensor x = tensor_of<float>({2}, {2, 3});
  const TestTensor indices = tensor_of<std::int32_t>({2, 1}, {1, 1});
  const TestTensor updates = tensor_of<float>({2}, {5, -4});
  EXPECT_EQ(scatter(ScatterReduction::kAdd, x, indices, updates), (V{2, 4}));
  EXPECT_EQ(scatter(ScatterReduction::kMul, x, indices, updates), (V{2, -60}));
  EXPECT_EQ(scatter(ScatterReduction::kMin, x, indices, updates), (V{2, -4}));
  EXPECT_EQ(scatter(ScatterReduction::kMax, x, indices, updates), (V{2, 5}));
}

TEST(ScatterNd, IntegersWrap) {
  const Outcome y = run_reference(make_case(kScatterNd, ScatterNdParams{.reduction = ScatterReduction::kAdd},
                                            {tensor_of<std::int32_t>({1}, {0x7fffffff}),
                                             tensor_of<std::int32_t>({1, 1}, {0}), tensor_of<std::int32_t>({1}, {1})}));
  EXPECT_EQ(y.outputs[0].values<std::int32_t>(), (std::vector<std::int32_t>{-0x7fffffff - 1}));
}

TEST(ScatterNd, MayOverwriteItsOperand) {
  expect_variants_match_reference([](Random& random) {
    TestTensor indices = random_tensor(ElementType::kI32, {random_int(random, 0, 3), 2}, random, -2, 1);
    const std::int64_t count = indices.desc().dims[0];
    const ScatterNdParams params{.reduction = static_cast<ScatterReduction>(random_int(random, 0, 4))};
    return make_case(kScatterNd, params,
                     {random_tensor(ElementType::kF32, {2, 3, 4}, random), std::move(indices),
                      random_tensor(ElementType::kF32, {count, 4}, random)});
  });
}

TEST(ScatterNd, IndexOutsideIsAFault) {
  const Outcome y = run_reference(
      make_case(kScatterNd, ScatterNdParams{},
                {tensor_of<float>({2}, {1, 2}), tensor_of<std::int64_t>({1, 1}, {-3}), tensor_of<float>({1}, {1})}));
  EXPECT_EQ(y.status.code, StatusCode::kOutOfRange);
}

TEST(ScatterNd, RefusesHostileShapesAndTypes) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<float>({2, 2}, {1, 2, 3, 4});
  const TestTensor index = tensor_of<std::int64_t>({1, 1}, {0});
  const TestTensor row = tensor_of<float>({1, 2}, {1, 2});
  const auto refused = [&](std::int32_t reduction, const TestTensor& indices, const TestTensor& updates) {
    const ScatterNdParams params{.reduction = static_cast<ScatterReduction>(reduction)};
    return !infer_case(make_case(kScatterNd, params, {x, indices, updates}), &outputs).ok();
  };
  EXPECT_FALSE(refused(0, index, row));
  EXPECT_TRUE(refused(5, index, row));
  EXPECT_TRUE(refused(-1, index, row));
  EXPECT_TRUE(refused(0, index, tensor_of<float>({2, 1}, {1, 2})));
  EXPECT_TRUE(refused(0, index, tensor_of<std::int32_t>({1, 2}, {1, 2})));
  EXPECT_TRUE(refused(0, tensor_of<std::int64_t>({1, 3}, {0, 0, 0}), row));
  EXPECT_TRUE(refused(0, row, row));
}

}  // namespace
}  // namespace bantam::ops
