#include "ops/data/scatter_elements/scatter_elements.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TEST(ScatterElements, WritesAlongTheAxis) {
  const auto scatter = [](const ScatterElementsParams& params, const TestTensor& indices, const TestTensor& updates) {
    const TestTensor x = tensor_of<float>({1, 5}, {1, 2, 3, 4, 5});
    return run_reference(make_case(kScatterElements, params, {x, indices, updates})).outputs[0].values<float>();
  };
  const TestTensor updates = tensor_of<float>({1, 2}, {1.5F, 2.5F});
  EXPECT_EQ(scatter({.axis = 1}, tensor_of<std::int64_t>({1, 2}, {1, -2}), updates),
            (std::vector<float>{1, 1.5F, 3, 2.5F, 5}));
  const TestTensor twice = tensor_of<std::int64_t>({1, 2}, {1, 1});
  EXPECT_EQ(scatter({.axis = 1, .reduction = ScatterReduction::kAdd}, twice, updates),
            (std::vector<float>{1, 6, 3, 4, 5}));
  EXPECT_EQ(scatter({.axis = 1, .reduction = ScatterReduction::kMax}, twice, updates),
            (std::vector<float>{1, 2.5F, 3, 4, 5}));
}

TEST(ScatterElements, MayOverwriteItsOperand) {
  expect_variants_match_reference([](Random& random) {
    const auto axis = static_cast<std::int32_t>(random_int(random, 0, 2));
    const auto dims = random_dims(random, 3, 1, 4);
    auto picked = dims;
    for (std::int64_t& d : picked) d = random_int(random, 0, d);
    const ScatterElementsParams params{.axis = axis,
                                       .reduction = static_cast<ScatterReduction>(random_int(random, 0, 4))};
    return make_case(
        kScatterElements, params,
        {random_tensor(ElementType::kI64, dims, random, -9, 9), random_tensor(ElementType::kI64, picked, random, -1, 0),
         random_tensor(ElementType::kI64, picked, random, -9, 9)});
  });
}

TEST(ScatterElements, IndexOutsideIsAFault) {
  const Outcome y = run_reference(
      make_case(kScatterElements, ScatterElementsParams{},
                {tensor_of<float>({2}, {1, 2}), tensor_of<std::int64_t>({1}, {2}), tensor_of<float>({1}, {1})}));
  EXPECT_EQ(y.status.code, StatusCode::kOutOfRange);
}

TEST(ScatterElements, RefusesHostileShapes) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<float>({2}, {1, 2});
  const TestTensor index = tensor_of<std::int64_t>({1}, {0});
  const auto refused = [&](std::int32_t axis, const TestTensor& indices, const TestTensor& updates) {
    return !infer_case(make_case(kScatterElements, ScatterElementsParams{.axis = axis}, {x, indices, updates}),
                       &outputs)
                .ok();
  };
  EXPECT_TRUE(refused(1, index, tensor_of<float>({1}, {1})));
  EXPECT_TRUE(refused(0, index, x));
  EXPECT_TRUE(refused(0, index, tensor_of<float>({}, {1})));
  EXPECT_TRUE(refused(0, index, tensor_of<std::int32_t>({1}, {1})));
}

}  // namespace
}  // namespace bantam::ops
