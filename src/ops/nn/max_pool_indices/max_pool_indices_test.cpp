#include "ops/nn/max_pool_indices/max_pool_indices.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

using Indices = std::vector<std::int64_t>;

/// Windows of one size along `axes` axes, without padding.
MaxPoolIndicesParams window(int axes, std::int32_t kernel, std::int32_t stride) {
  const auto count = static_cast<std::size_t>(axes);
  return {.kernel = int_list(std::vector<std::int32_t>(count, kernel)),
          .strides = int_list(std::vector<std::int32_t>(count, stride)),
          .dilations = int_list(std::vector<std::int32_t>(count, 1)),
          .before = int_list(std::vector<std::int32_t>(count, 0)),
          .after = int_list(std::vector<std::int32_t>(count, 0))};
}

TestTensor counted(const std::vector<std::int64_t>& dims) {
  TestTensor x(dense_desc(ElementType::kF32, dims));
  std::vector<float> values(static_cast<std::size_t>(x.desc().elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  x.set_values(values);
  return x;
}

TEST(MaxPoolIndices, ExamplesOfTheStandard) {
  // ONNX test_maxpool_with_argmax_2d_precomputed_{strides, pads}.
  const Outcome strides = run_reference(make_case(kMaxPoolIndices, window(2, 2, 2), {counted({1, 1, 5, 5})}));
  EXPECT_EQ(strides.outputs[0].values<float>(), (std::vector<float>{7, 9, 17, 19}));
  EXPECT_EQ(strides.outputs[1].values<std::int64_t>(), (Indices{6, 8, 16, 18}));
  MaxPoolIndicesParams padded = window(2, 5, 1);
  padded.before = padded.after = int_list({2, 2});
  const Outcome pads = run_reference(make_case(kMaxPoolIndices, padded, {counted({1, 1, 5, 5})}));
  EXPECT_EQ(pads.outputs[1].values<std::int64_t>(), (Indices{12, 13, 14, 14, 14, 17, 18, 19, 19, 19, 22, 23, 24,
                                                             24, 24, 22, 23, 24, 24, 24, 22, 23, 24, 24, 24}));
}

TEST(MaxPoolIndices, ColumnMajorIndicesCountTheFirstSpatialAxisFastest) {
  MaxPoolIndicesParams p = window(2, 2, 2);
  p.column_major = 1;
  const Outcome y = run_reference(make_case(kMaxPoolIndices, p, {counted({1, 2, 2, 4})}));
  // Element (1, 1) of the first channel: 1 + 1 * 2; (1, 3): 1 + 3 * 2; the second channel is 8 further.
  EXPECT_EQ(y.outputs[1].values<std::int64_t>(), (Indices{3, 7, 11, 15}));
}

TEST(MaxPoolIndices, BatchAndChannelCount) {
  const Outcome y = run_reference(make_case(kMaxPoolIndices, window(1, 2, 2), {counted({2, 2, 4})}));
  EXPECT_EQ(y.outputs[1].values<std::int64_t>(), (Indices{1, 3, 5, 7, 9, 11, 13, 15}));
}

TEST(MaxPoolIndices, FirstOfEqualMaximaWinsAndNansDoNotCount) {
  const float nan = std::nanf("");
  const Outcome y = run_reference(
      make_case(kMaxPoolIndices, window(1, 3, 3), {tensor_of<float>({1, 1, 6}, {nan, 2, 2, nan, nan, -1})}));
  EXPECT_EQ(y.outputs[0].values<float>(), (std::vector<float>{2, -1}));
  EXPECT_EQ(y.outputs[1].values<std::int64_t>(), (Indices{1, 5}));
}

TEST(MaxPoolIndices, LowestValuesHaveAPlaceAndEmptyWindowsHaveNone) {
  const Outcome lowest =
      run_reference(make_case(kMaxPoolIndices, window(1, 2, 2), {tensor_of<std::int8_t>({1, 1, 2}, {-128, -128})}));
  EXPECT_EQ(lowest.outputs[1].values<std::int64_t>(), (Indices{0}));
  MaxPoolIndicesParams p = window(1, 1, 1);
  p.before = int_list({1});
  const Outcome y = run_reference(make_case(kMaxPoolIndices, p, {tensor_of<std::int8_t>({1, 1, 1}, {5})}));
  EXPECT_EQ(y.outputs[0].values<std::int8_t>(), (std::vector<std::int8_t>{-128, 5}));
  EXPECT_EQ(y.outputs[1].values<std::int64_t>(), (Indices{-1, 0}));
}

TEST(MaxPoolIndices, IndicesPointAtTheMaximaOnThreeAxes) {
  Random random(3);
  const TestTensor x = random_tensor(ElementType::kF32, {2, 3, 4, 5, 6}, random);
  MaxPoolIndicesParams p = window(3, 3, 2);
  p.before = int_list({1, 0, 1});
  p.dilations = int_list({1, 2, 1});
  p.ceil_mode = 1;
  const Outcome y = run_reference(make_case(kMaxPoolIndices, p, {x}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  const auto values = x.values<float>();
  const auto maxima = y.outputs[0].values<float>();
  const auto indices = y.outputs[1].values<std::int64_t>();
  for (std::size_t i = 0; i < maxima.size(); ++i) EXPECT_EQ(values[static_cast<std::size_t>(indices[i])], maxima[i]);
}

TEST(MaxPoolIndices, ThreadsGiveTheSame) {
  expect_variants_match_reference([](Random& random) {
    MaxPoolIndicesParams p = window(2, static_cast<std::int32_t>(random_int(random, 1, 3)),
                                    static_cast<std::int32_t>(random_int(random, 1, 3)));
    p.column_major = static_cast<std::int32_t>(random_int(random, 0, 1));
    return make_case(kMaxPoolIndices, p, {random_tensor(ElementType::kI16, {2, 3, 9, 8}, random, -9, 9)});
  });
}

/// Few different values, so that many maxima are equal, and some that do not count.
TestTensor repeating(const std::vector<std::int64_t>& dims, Random& random) {
  TestTensor x(dense_desc(ElementType::kF32, dims));
  std::vector<float> values(static_cast<std::size_t>(x.desc().elements()));
  const float some[] = {-1, 0, 1, 2, std::nanf(""), -INFINITY};
  for (float& value : values) value = some[random_int(random, 0, 5)];
  x.set_values(values);
  return x;
}

TEST(MaxPoolIndices, VariantsMatchReferenceForImagesAndSequencesOfAllWidths) {
  expect_variants_match_reference([](Random& random) {
    const int axes = static_cast<int>(random_int(random, 1, 2));
    MaxPoolIndicesParams p = window(axes, 1, 1);
    std::vector<std::int64_t> dims{random_int(random, 1, 2), random_int(random, 1, 3)};
    for (int i = 0; i < axes; ++i) {
      p.kernel.v[i] = static_cast<std::int32_t>(random_int(random, 1, 4));
      p.strides.v[i] = static_cast<std::int32_t>(random_int(random, 1, 3));
      p.dilations.v[i] = static_cast<std::int32_t>(random_int(random, 1, 2));
      p.before.v[i] = static_cast<std::int32_t>(random_int(random, 0, 4));
      p.after.v[i] = static_cast<std::int32_t>(random_int(random, 0, 4));
      dims.push_back(random_int(random, 7, i + 1 < axes ? 9 : 90));
    }
    p.ceil_mode = static_cast<std::int32_t>(random_int(random, 0, 1));
    p.column_major = static_cast<std::int32_t>(random_int(random, 0, 1));
    return make_case(kMaxPoolIndices, p, {repeating(dims, random)});
  });
}

TEST(MaxPoolIndices, WindowsFarLargerThanTheImageTakeNoLongerThanTheImage) {
  constexpr std::int32_t kHuge = 1 << 30;
  expect_variants_match_reference(
      [](Random& random) {
        const bool is_near = random_int(random, 0, 1) == 0;
        MaxPoolIndicesParams p = window(2, kHuge, is_near ? 1 : kHuge / 16);
        p.before = int_list({kHuge - 1, is_near ? kHuge - 2 : kHuge});
        p.after = int_list({0, is_near ? 3 : kHuge - 1});
        return make_case(kMaxPoolIndices, p, {repeating({1, 2, 3, 40}, random)});
      },
      {.cases = 6});
}

TEST(MaxPoolIndices, RefusesWhatIsNoWindow) {
  std::vector<TensorDesc> outputs;
  const auto refused = [&](const MaxPoolIndicesParams& p, const TestTensor& x) {
    return !infer_case(make_case(kMaxPoolIndices, p, {x}), &outputs).ok();
  };
  EXPECT_FALSE(refused(window(2, 2, 1), counted({1, 1, 3, 3})));
  EXPECT_TRUE(refused(window(1, 2, 1), counted({1, 1, 3, 3})));
  EXPECT_TRUE(refused(window(2, 4, 1), counted({1, 1, 3, 3})));
  EXPECT_TRUE(refused(window(2, 2, 0), counted({1, 1, 3, 3})));
  EXPECT_TRUE(refused(window(0, 2, 1), counted({3, 3})));
}

}  // namespace
}  // namespace bantam::ops
