#include "ops/nn/planar_conv2d/planar_conv2d.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/data/transpose/transpose.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using testing::absent;
using testing::constant;
using testing::make_case;
using testing::OpCase;
using testing::Outcome;
using testing::Random;
using testing::random_int;
using testing::random_tensor;
using testing::run_reference;
using testing::TestTensor;

OpCase random_planar_case(Random& random) {
  const auto small = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  Conv2dParams p{.stride_h = small(1, 3), .stride_w = small(1, 2)};
  p.pad_top = small(0, 3);
  p.pad_left = small(0, 3);
  p.pad_bottom = small(0, 3);
  p.pad_right = small(0, 3);
  p.activation = {small(0, 1) == 0 ? UnaryFunction::kRelu : UnaryFunction::kSigmoid, 0, 0};
  const std::int64_t inputs = small(1, 5);
  const std::int64_t outputs = small(1, 68);
  const std::int64_t width = small(12, small(0, 5) == 0 ? 250 : 50);
  return make_case(kPlanarConv2d, p,
                   {random_tensor(ElementType::kF32, {small(1, 2), inputs, small(5, 12), width}, random),
                    constant(random_tensor(ElementType::kF32, {outputs, small(1, 5), small(1, 8), inputs}, random)),
                    small(0, 1) == 0 ? absent() : constant(random_tensor(ElementType::kF32, {outputs}, random))});
}

TEST(PlanarConv2d, VariantsMatchReference) {
  testing::expect_variants_match_reference(random_planar_case, {.cases = 50, .must_cover = {"f32_few_inputs__simd"}});
}

TEST(PlanarConv2d, IsConv2dOfTheTransposedImage) {
  Random random(3);
  for (int i = 0; i < 20; ++i) {
    OpCase planar = random_planar_case(random);
    const Outcome expected = run_reference(planar);
    ASSERT_TRUE(expected.status.ok()) << expected.status.message;
    const Outcome turned = run_reference(
        make_case(kTranspose, TransposeParams{.perm = testing::int_list({0, 2, 3, 1})}, {planar.inputs[0].tensor}));
    OpCase last = planar;
    last.op = &kConv2d;
    last.inputs[0] = turned.outputs[0];
    EXPECT_EQ(testing::compare(run_reference(last).outputs[0], expected.outputs[0], {Accuracy::Kind::kRelative, 1e-6F}),
              "");
  }
}

TEST(PlanarConv2d, RefusesWhatDoesNotFit) {
  const auto status = [](Conv2dParams p, std::vector<std::int64_t> x, std::vector<std::int64_t> w, ElementType type) {
    std::vector<TensorDesc> outputs;
    return testing::infer_case(
        make_case(kPlanarConv2d, p,
                  {TestTensor(testing::dense_desc(type, x)), TestTensor(testing::dense_desc(type, w))}),
        &outputs);
  };
  EXPECT_TRUE(status({}, {1, 3, 8, 8}, {4, 3, 3, 3}, ElementType::kF32).ok());
  EXPECT_FALSE(status({}, {1, 8, 8, 3}, {4, 3, 3, 3}, ElementType::kF32).ok());
  EXPECT_FALSE(status({}, {3, 8, 8}, {4, 3, 3, 3}, ElementType::kF32).ok());
  EXPECT_FALSE(status({}, {1, 3, 8, 8}, {4, 3, 3, 3}, ElementType::kI8).ok());
  EXPECT_FALSE(status({.groups = 3}, {1, 3, 8, 8}, {3, 3, 3, 1}, ElementType::kF32).ok());
}

}  // namespace
}  // namespace bantam::ops
