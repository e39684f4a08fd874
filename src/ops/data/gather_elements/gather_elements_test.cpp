#include "ops/data/gather_elements/gather_elements.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TEST(GatherElements, PicksAlongTheAxis) {
  const TestTensor x = tensor_of<float>({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const TestTensor indices = tensor_of<std::int32_t>({2, 3}, {1, 2, 0, 2, 0, -3});
  EXPECT_EQ(run_reference(make_case(kGatherElements, GatherElementsParams{}, {x, indices})).outputs[0].values<float>(),
            (std::vector<float>{4, 8, 3, 7, 2, 3}));
  const TestTensor wide = tensor_of<std::int64_t>({1, 4}, {0, 0, 2, -1});
  EXPECT_EQ(
      run_reference(make_case(kGatherElements, GatherElementsParams{.axis = 1}, {x, wide})).outputs[0].values<float>(),
      (std::vector<float>{1, 1, 3, 3}));
}

TEST(GatherElements, IndexOutsideIsAFault) {
  const TestTensor x = tensor_of<float>({2}, {1, 2});
  const TestTensor empty = tensor_of<float>({0}, {});
  const TestTensor index = tensor_of<std::int32_t>({1}, {2});
  EXPECT_EQ(run_reference(make_case(kGatherElements, GatherElementsParams{}, {x, index})).status.code,
            StatusCode::kOutOfRange);
  EXPECT_EQ(run_reference(make_case(kGatherElements, GatherElementsParams{}, {empty, index})).status.code,
            StatusCode::kOutOfRange);
}

TEST(GatherElements, RefusesShapesThatDoNotMatch) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<float>({2, 1}, {1, 2});
  const auto refused = [&](std::int32_t axis, const TestTensor& indices) {
    return !infer_case(make_case(kGatherElements, GatherElementsParams{.axis = axis}, {x, indices}), &outputs).ok();
  };
  EXPECT_TRUE(refused(1, tensor_of<std::int32_t>({3, 1}, {0, 0, 0})));
  EXPECT_TRUE(refused(0, tensor_of<std::int32_t>({1}, {0})));
  EXPECT_TRUE(refused(2, tensor_of<std::int32_t>({1, 1}, {0})));
  EXPECT_TRUE(refused(0, x));
}

}  // namespace
}  // namespace bantam::ops
