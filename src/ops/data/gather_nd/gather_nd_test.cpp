#include "ops/data/gather_nd/gather_nd.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

std::vector<std::int32_t> gather(const TestTensor& x, const TestTensor& indices, std::int32_t batch_dims = 0) {
  const Outcome y = run_reference(make_case(kGatherNd, GatherNdParams{.batch_dims = batch_dims}, {x, indices}));
  EXPECT_TRUE(y.status.ok()) << y.status.message;
  return y.outputs.empty() ? std::vector<std::int32_t>{} : y.outputs[0].values<std::int32_t>();
}

TEST(GatherNd, TuplesPickElementsAndSlices) {
  using V = std::vector<std::int32_t>;
  const TestTensor x = tensor_of<std::int32_t>({2, 2}, {0, 1, 2, 3});
  EXPECT_EQ(gather(x, tensor_of<std::int64_t>({2, 2}, {0, 0, 1, 1})), (V{0, 3}));
  EXPECT_EQ(gather(x, tensor_of<std::int64_t>({2, 1}, {1, -2})), (V{2, 3, 0, 1}));
  const TestTensor cube = tensor_of<std::int32_t>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(gather(cube, tensor_of<std::int64_t>({2, 1, 2}, {0, 1, 1, 0})), (V{2, 3, 4, 5}));
  EXPECT_EQ(gather(cube, tensor_of<std::int64_t>({2, 1}, {1, 0}), 1), (V{2, 3, 4, 5}));
}

TEST(GatherNd, IndexOutsideIsAFault) {
  const TestTensor x = tensor_of<std::int32_t>({2, 2}, {0, 1, 2, 3});
  EXPECT_EQ(
      run_reference(make_case(kGatherNd, GatherNdParams{}, {x, tensor_of<std::int32_t>({1, 2}, {1, 2})})).status.code,
      StatusCode::kOutOfRange);
}

TEST(GatherNd, RefusesHostileShapes) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<std::int32_t>({2, 2}, {0, 1, 2, 3});
  const auto refused = [&](std::int32_t batch_dims, const TestTensor& indices) {
    return !infer_case(make_case(kGatherNd, GatherNdParams{.batch_dims = batch_dims}, {x, indices}), &outputs).ok();
  };
  EXPECT_TRUE(refused(0, tensor_of<std::int32_t>({1, 3}, {0, 0, 0})));
  EXPECT_TRUE(refused(0, tensor_of<std::int32_t>({}, {0})));
  EXPECT_TRUE(refused(1, tensor_of<std::int32_t>({1}, {0})));
  EXPECT_TRUE(refused(1, tensor_of<std::int32_t>({3, 1}, {0, 0, 0})));
  EXPECT_TRUE(refused(1, tensor_of<std::int32_t>({2, 2}, {0, 0, 0, 0})));
  EXPECT_TRUE(refused(-1, tensor_of<std::int32_t>({1, 1}, {0})));
}

}  // namespace
}  // namespace bantam::ops
