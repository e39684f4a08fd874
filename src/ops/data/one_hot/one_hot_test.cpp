#include "ops/data/one_hot/one_hot.h"

#include <gtest/gtest.h>

#include <limits>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

std::vector<std::int32_t> one_hot(const TestTensor& indices, const OneHotParams& params) {
  const Outcome y = run_reference(
      make_case(kOneHot, params, {indices, tensor_of<std::int32_t>({}, {2}), tensor_of<std::int32_t>({1}, {5})}));
  EXPECT_TRUE(y.status.ok()) << y.status.message;
  return y.outputs.empty() ? std::vector<std::int32_t>{} : y.outputs[0].values<std::int32_t>();
}

TEST(OneHot, MarksIndicesAlongTheAxis) {
  using V = std::vector<std::int32_t>;
  const TestTensor indices = tensor_of<std::int64_t>({2}, {1, -1});
  EXPECT_EQ(one_hot(indices, {.axis = -1, .depth = 3}), (V{2, 5, 2, 2, 2, 5}));
  EXPECT_EQ(one_hot(indices, {.axis = 0, .depth = 3}), (V{2, 2, 5, 2, 2, 5}));
  EXPECT_EQ(one_hot(indices, {.axis = 0, .depth = 0}), V{});
  EXPECT_EQ(one_hot(tensor_of<std::int32_t>({}, {0}), {.axis = 0, .depth = 2}), (V{5, 2}));
}

TEST(OneHot, IndicesOutsideMarkNothing) {
  using V = std::vector<std::int32_t>;
  EXPECT_EQ(one_hot(tensor_of<std::int64_t>({2}, {3, -4}), {.axis = 1, .depth = 3}), (V{2, 2, 2, 2, 2, 2}));
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(one_hot(tensor_of<float>({4}, {1.0F, kNan, 1e30F, -2.0F}), {.axis = 1, .depth = 2}),
            (V{2, 5, 2, 2, 2, 2, 5, 2}));
}

TEST(OneHot, RefusesHostileParameters) {
  std::vector<TensorDesc> outputs;
  const TestTensor indices = tensor_of<std::int64_t>({2}, {1, -1});
  const TestTensor value = tensor_of<float>({}, {1});
  const auto refused = [&](const OneHotParams& p, std::vector<Operand> operands) {
    return !infer_case(make_case(kOneHot, p, std::move(operands)), &outputs).ok();
  };
  EXPECT_TRUE(refused({.axis = 2, .depth = 1}, {indices, value, value}));
  EXPECT_TRUE(refused({.axis = -3, .depth = 1}, {indices, value, value}));
  EXPECT_TRUE(refused({.axis = 0, .depth = -1}, {indices, value, value}));
  EXPECT_TRUE(refused({.axis = 0, .depth = 0x7fffffff}, {indices, value, value}));
  EXPECT_TRUE(refused({.axis = 0, .depth = 1}, {indices, value, indices}));
  EXPECT_TRUE(refused({.axis = 0, .depth = 1}, {tensor_of<std::int8_t>({1}, {1}), value, value}));
}

}  // namespace
}  // namespace bantam::ops
