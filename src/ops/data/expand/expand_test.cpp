#include "ops/data/expand/expand.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

ExpandParams expand_to(std::initializer_list<std::int32_t> dims) {
  ExpandParams params;
  for (const std::int32_t d : dims) params.shape.v[params.shape.size++] = d;
  return params;
}

TEST(Expand, RepeatsUnitDimensions) {
  const auto expand = [](const TestTensor& x, const ExpandParams& p) {
    return run_reference(make_case(kExpand, p, {x})).outputs[0].values<std::int64_t>();
  };
  const TestTensor column = tensor_of<std::int64_t>({3, 1}, {1, 2, 3});
  EXPECT_EQ(expand(column, expand_to({3, 2})), (std::vector<std::int64_t>{1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(expand(column, expand_to({2, 3, 1})), (std::vector<std::int64_t>{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(expand(tensor_of<std::int64_t>({}, {7}), expand_to({2, 2})), (std::vector<std::int64_t>{7, 7, 7, 7}));
  EXPECT_EQ(expand(column, expand_to({0, 3, 1})), std::vector<std::int64_t>{});
}

TEST(Expand, RefusesShapesTheOperandDoesNotBroadcastTo) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<float>({2, 1}, {1, 2});
  for (const ExpandParams& p :
       {expand_to({3, 1}), expand_to({1, 1}), expand_to({2}), expand_to({-2, 2, 1}), expand_to({0x7fffffff, 2, 1})})
    EXPECT_FALSE(infer_case(make_case(kExpand, p, {x}), &outputs).ok());
}

}  // namespace
}  // namespace bantam::ops
