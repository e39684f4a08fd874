#include "ops/nn/deform_conv2d/deform_conv2d.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/nn/conv2d/conv2d.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TEST(DeformConv2d, SamplesWhereOffsetsSay) {
  // ONNX test_deform_conv_with_mask_bias, one window of it: the image 0..8, weights of one, tap (0, 0) half an element
  // further right and tap (1, 1) a tenth further up.
  const TestTensor x = tensor_of<float>({1, 3, 3, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  const TestTensor w = tensor_of<float>({1, 2, 2, 1}, {1, 1, 1, 1});
  const TestTensor offsets = tensor_of<float>({1, 1, 1, 8}, {0, 0.5F, 0, 0, 0, 0, -0.1F, 0});
  const TestTensor mask = tensor_of<float>({1, 1, 1, 4}, {1, 1, 1, 0.2F});
  const DeformConv2dParams p{.stride_h = 2, .stride_w = 2};
  const Outcome y = run_reference(make_case(kDeformConv2d, p, {x, w, offsets, tensor_of<float>({1}, {1}), mask}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_NEAR(y.outputs[0].values<float>()[0], 0.5 + 1 + 3 + 0.2 * 3.7 + 1, 1e-6);
}

TEST(DeformConv2d, SamplesOutsideAreZero) {
  const TestTensor x = tensor_of<float>({1, 2, 2, 1}, {4, 4, 4, 4});
  const TestTensor w = tensor_of<float>({1, 1, 1, 1}, {1});
  const auto at = [&](float dy, float dx) {
    const TestTensor offsets = tensor_of<float>({1, 2, 2, 2}, {dy, dx, 0, 0, 0, 0, 0, 0});
    return run_reference(make_case(kDeformConv2d, DeformConv2dParams{}, {x, w, offsets})).outputs[0].values<float>()[0];
  };
  EXPECT_EQ(at(0, 0), 4);
  EXPECT_EQ(at(-0.5F, 0), 2);
  EXPECT_EQ(at(-0.5F, -0.5F), 1);
  EXPECT_EQ(at(1.5F, 0), 2);
  EXPECT_EQ(at(-1, 0), 0);
  EXPECT_EQ(at(3e38F, 0), 0);
  EXPECT_EQ(at(0, -3e38F), 0);
  EXPECT_EQ(at(std::nanf(""), 0), 0);
}

TEST(DeformConv2d, WithoutOffsetsItIsAConvolution) {
  Random random(11);
  const TestTensor x = random_tensor(ElementType::kF32, {2, 7, 6, 4}, random);
  const TestTensor w = random_tensor(ElementType::kF32, {6, 3, 2, 2}, random);
  const TestTensor bias = random_tensor(ElementType::kF32, {6}, random);
  const DeformConv2dParams p{
      .stride_h = 2, .dilation_w = 2, .pad_top = 1, .pad_right = 2, .groups = 2, .offset_groups = 2};
  const Conv2dParams plain{.stride_h = 2, .dilation_w = 2, .pad_top = 1, .pad_right = 2, .groups = 2};
  const Outcome expected = run_reference(make_case(kConv2d, plain, {x, w, bias}));
  const TensorDesc& d = expected.outputs[0].desc();
  TestTensor offsets(dense_desc(ElementType::kF32, {2, d.dims[1], d.dims[2], 2 * 6 * 2}));
  offsets.set_values(std::vector<float>(static_cast<std::size_t>(offsets.desc().elements()), 0.0F));
  const Outcome y = run_reference(make_case(kDeformConv2d, p, {x, w, offsets, bias}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_EQ(compare(y.outputs[0], expected.outputs[0], {Accuracy::Kind::kRelative, 1e-6F}), "");
}

TEST(DeformConv2d, ThreadsGiveTheSame) {
  expect_variants_match_reference(
      [](Random& random) {
        const auto groups = static_cast<std::int32_t>(random_int(random, 1, 2));
        const std::int64_t members = random_int(random, 1, 9), outputs = groups * random_int(random, 1, 20);
        const DeformConv2dParams p{.groups = groups, .offset_groups = groups};
        return make_case(kDeformConv2d, p,
                         {random_tensor(ElementType::kF32, {1, 6, 7, groups * members}, random),
                          constant(random_tensor(ElementType::kF32, {outputs, 2, 2, members}, random)),
                          random_tensor(ElementType::kF32, {1, 5, 6, groups * 8}, random, -3, 3),
                          random_tensor(ElementType::kF32, {outputs}, random),
                          random_tensor(ElementType::kF32, {1, 5, 6, groups * 4}, random)});
      },
      {.cases = 30, .must_cover = {kDeformConv2d.variants[0].name}});
}

TEST(DeformConv2d, RefusesWhatDoesNotFit) {
  std::vector<TensorDesc> outputs;
  const auto refused = [&](const DeformConv2dParams& p, std::int64_t offsets) {
    return !infer_case(make_case(kDeformConv2d, p,
                                 {TestTensor(dense_desc(ElementType::kF32, {1, 3, 3, 2})),
                                  TestTensor(dense_desc(ElementType::kF32, {2, 2, 2, 2})),
                                  TestTensor(dense_desc(ElementType::kF32, {1, 2, 2, offsets}))}),
                       &outputs)
                .ok();
  };
  EXPECT_FALSE(refused({}, 8));
  EXPECT_FALSE(refused({.offset_groups = 2}, 16));
  EXPECT_TRUE(refused({}, 7));
  EXPECT_TRUE(refused({.offset_groups = 0}, 8));
  EXPECT_TRUE(refused({.offset_groups = 3}, 24));
  EXPECT_TRUE(refused({.groups = 2}, 8));
  EXPECT_TRUE(refused({.stride_h = 0}, 8));
}

}  // namespace
}  // namespace bantam::ops
