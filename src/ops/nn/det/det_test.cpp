#include "ops/nn/det/det.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TEST(Det, SmallMatricesByHand) {
  const auto det = [](const std::vector<std::int64_t>& dims, const std::vector<float>& x) {
    return run_reference(make_case(kDet, {tensor_of<float>(dims, x)})).outputs[0].values<float>();
  };
  using V = std::vector<float>;
  EXPECT_EQ(det({2, 2}, {0, 1, 2, 3}), V{-2});                                       // ONNX test_det_2d
  EXPECT_EQ(det({3, 2, 2}, {1, 2, 3, 4, 1, 2, 2, 1, 1, 3, 3, 1}), (V{-2, -3, -8}));  // ONNX test_det_nd
  EXPECT_EQ(det({3, 3}, {0, 0, 2, 0, 3, 0, 4, 0, 0}), V{-24});                       // needs exchanges of rows
  EXPECT_EQ(det({2, 2}, {1, 2, 2, 4}), V{0});
  EXPECT_EQ(det({1, 1}, {7}), V{7});
  EXPECT_EQ(det({2, 0, 0}, {}), (V{1, 1}));
}

TEST(Det, DoublesKeepTheirPrecision) {
  const Outcome y = run_reference(make_case(kDet, {tensor_of<double>({2, 2}, {1e8, 1, 1e8 - 1, 1})}));
  EXPECT_NEAR(y.outputs[0].values<double>()[0], 1.0, 1e-7);  // float cannot tell the rows apart
}

TEST(Det, RefusesWhatIsNoSquareOfFloats) {
  std::vector<TensorDesc> outputs;
  const auto refused = [&](const TestTensor& x) { return !infer_case(make_case(kDet, {x}), &outputs).ok(); };
  EXPECT_TRUE(refused(tensor_of<float>({2}, {1, 2})));
  EXPECT_TRUE(refused(tensor_of<float>({1, 2}, {1, 2})));
  EXPECT_TRUE(refused(tensor_of<std::int32_t>({1, 1}, {1})));
}

}  // namespace
}  // namespace bantam::ops
