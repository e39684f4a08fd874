#include "ops/nn/col2im/col2im.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

Col2ImParams blocks(const std::vector<std::int32_t>& image, const std::vector<std::int32_t>& block) {
  const std::size_t axes = image.size();
  return {.image = int_list(image),
          .block = int_list(block),
          .strides = int_list(std::vector<std::int32_t>(axes, 1)),
          .dilations = int_list(std::vector<std::int32_t>(axes, 1)),
          .before = int_list(std::vector<std::int32_t>(axes, 0)),
          .after = int_list(std::vector<std::int32_t>(axes, 0))};
}

TestTensor ones(const std::vector<std::int64_t>& dims) {
  TestTensor x(dense_desc(ElementType::kF32, dims));
  x.set_values(std::vector<float>(static_cast<std::size_t>(x.desc().elements()), 1.0F));
  return x;
}

TEST(Col2Im, RowsOfBlocksBecomeRowsOfTheImage) {
  // ONNX test_col2im: blocks of 1 x 5 in an image of 5 x 5, one per row.
  TestTensor x(dense_desc(ElementType::kF32, {1, 5, 5}));
  std::vector<float> values(25);
  std::iota(values.begin(), values.end(), 1.0F);
  x.set_values(values);
  const Outcome y = run_reference(make_case(kCol2im, blocks({5, 5}, {1, 5}), {x}));
  const auto image = y.outputs[0].values<float>();
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 5; ++j) EXPECT_EQ(image[i * 5 + j], values[j * 5 + i]);
}

TEST(Col2Im, OverlapsAddUpAndPaddingIsDropped) {
  const Outcome overlap = run_reference(make_case(kCol2im, blocks({4}, {2}), {ones({1, 2, 3})}));
  EXPECT_EQ(overlap.outputs[0].values<float>(), (std::vector<float>{1, 2, 2, 1}));
  Col2ImParams padded = blocks({3}, {2});
  padded.before = padded.after = int_list({1});
  const Outcome y = run_reference(make_case(kCol2im, padded, {ones({1, 2, 4})}));
  EXPECT_EQ(y.outputs[0].values<float>(), (std::vector<float>{2, 2, 2}));
}

TEST(Col2Im, StridesAndDilationsPlaceElements) {
  Col2ImParams p = blocks({7}, {2});
  p.strides = int_list({2});
  p.dilations = int_list({3});
  const Outcome y = run_reference(make_case(kCol2im, p, {ones({1, 2, 2})}));
  EXPECT_EQ(y.outputs[0].values<float>(), (std::vector<float>{1, 0, 1, 1, 0, 1, 0}));
}

TEST(Col2Im, ChannelsBatchesAndThreeAxes) {
  const Outcome y = run_reference(make_case(kCol2im, blocks({2, 2, 2}, {2, 2, 1}), {ones({2, 12, 2})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_EQ(y.outputs[0].values<float>(), std::vector<float>(48, 1.0F));
  expect_variants_match_reference(
      [](Random& random) {
        return make_case(kCol2im, blocks({5, 4}, {2, 3}), {random_tensor(ElementType::kF32, {2, 18, 8}, random)});
      },
      {.cases = 10});
}

TEST(Col2Im, RefusesColumnsThatDoNotFit) {
  std::vector<TensorDesc> outputs;
  const auto refused = [&](const Col2ImParams& p, const std::vector<std::int64_t>& dims) {
    return !infer_case(make_case(kCol2im, p, {TestTensor(dense_desc(ElementType::kF32, dims))}), &outputs).ok();
  };
  EXPECT_FALSE(refused(blocks({4}, {2}), {1, 2, 3}));
  EXPECT_TRUE(refused(blocks({4}, {2}), {1, 3, 3}));
  EXPECT_TRUE(refused(blocks({4}, {2}), {1, 2, 4}));
  EXPECT_TRUE(refused(blocks({4}, {5}), {1, 5, 1}));
  EXPECT_TRUE(refused(blocks({-4}, {2}), {1, 2, 3}));
  EXPECT_TRUE(refused(blocks({4, 4}, {0x7fffffff, 0x7fffffff}), {1, 1, 1}));
}

}  // namespace
}  // namespace bantam::ops
