#include "ops/nn/norm/norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

NormParams over(std::initializer_list<std::int32_t> axes, std::int32_t rms = 0) {
  NormParams p{.rms = rms};
  for (const std::int32_t axis : axes) p.axes.v[p.axes.size++] = axis;
  return p;
}

TEST(Norm, KeepsDoublePrecision) {
  // The mean is 1 and the deviation 1e-10, which float would not see.
  const NormParams params{.axes = {1, {0}}, .epsilon = 0.0F};
  const Outcome y = run_reference(make_case(kNorm, params, {tensor_of<double>({2}, {1 - 1e-10, 1 + 1e-10})}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_NEAR(y.outputs[0].values<double>()[1], 1, 1e-5);
}

TEST(Norm, InstanceNormalisationExampleOfTheStandard) {
  // ONNX test_instancenorm_example, channels-last: x [1,1,3,2], normalised over the image.
  const Outcome y = run_reference(make_case(kNorm, over({1, 2}),
                                            {tensor_of<float>({1, 1, 3, 2}, {-1, 2, 0, 3, 1, 4}),
                                             tensor_of<float>({2}, {1, 1.5F}), tensor_of<float>({2}, {0, 1})}));
  expect_near(y.outputs[0].values<float>(), {-1.2247356F, -0.8371035F, 0, 1, 1.2247356F, 2.8371034F});
}

TEST(Norm, LayerAndRootMeanSquareRows) {
  const TestTensor x = tensor_of<float>({2, 2}, {1, 3, 2, 2});
  expect_near(run_reference(make_case(kNorm, over({1}), {x})).outputs[0].values<float>(),
              {-0.999995F, 0.999995F, 0, 0});
  const float r = 1 / std::sqrt(5 + 1e-5F);
  const float s = 1 / std::sqrt(4 + 1e-5F);
  expect_near(run_reference(make_case(kNorm, over({1}, 1), {x, absent(), tensor_of<float>({}, {1})}))
                  .outputs[0]
                  .values<float>(),
              {r + 1, 3 * r + 1, 2 * s + 1, 2 * s + 1});
}

TEST(Norm, NoAxesNormaliseSingleElements) {
  expect_near(run_reference(make_case(kNorm, over({}), {tensor_of<float>({2}, {5, -7})})).outputs[0].values<float>(),
              {0, 0});
}

OpCase random_norm_case(Random& random, bool rows_only) {
  const int rank = static_cast<int>(random_int(random, 1, 4));
  const auto dims = random_dims(random, rank, random_int(random, 0, 9) == 0 ? 0 : 1, 12);
  NormParams p{.rms = static_cast<std::int32_t>(random_int(random, 0, 1))};
  const std::int64_t first = rows_only ? random_int(random, 0, rank - 1) : 0;
  for (std::int64_t i = first; i < rank; ++i)
    if (rows_only || random_int(random, 0, 1) == 1) p.axes.v[p.axes.size++] = static_cast<std::int32_t>(i);
  std::vector<Operand> operands{random_tensor(ElementType::kF32, dims, random, -3, 5)};
  for (int i = 0; i < 2; ++i) {
    if (random_int(random, 0, 2) == 0) {
      operands.push_back(absent());
      continue;
    }
    auto own = std::vector<std::int64_t>(dims.begin() + (rows_only ? first : random_int(random, 0, rank)), dims.end());
    if (!rows_only)
      for (std::int64_t& d : own) d = random_int(random, 0, 1) == 1 ? d : 1;
    operands.emplace_back(random_tensor(ElementType::kF32, own, random));
  }
  return make_case(kNorm, p, std::move(operands));
}

TEST(Norm, VariantsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) { return random_norm_case(random, random_int(random, 0, 1) == 1); },
      {.cases = 200, .must_cover = {"f32_blocks__simd"}});
}

// Rows of up to some vectors, which stay in registers, and a little longer ones; in place, too.
TEST(Norm, ShortRowsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        const std::int64_t n = random_int(random, 2, random_int(random, 0, 1) == 0 ? 20 : 150);
        NormParams p = over({1});
        p.rms = static_cast<std::int32_t>(random_int(random, 0, 1));
        // Multiples of 1/8: of few numbers that are nearly the same, rounding would be most of what is left.
        const std::int64_t rows = random_int(random, 1, 40);
        std::vector<float> x(static_cast<std::size_t>(rows * n));
        for (float& value : x) value = static_cast<float>(random_int(random, -24, 40)) / 8.0F;
        std::vector<Operand> operands{tensor_of<float>({rows, n}, x)};
        for (int i = 0; i < 2; ++i) {
          const std::vector<std::int64_t> own[] = {{}, {1}, {n}, {rows, 1}};
          const auto& dims = own[random_int(random, 0, 3)];
          operands.push_back(dims.empty() ? absent() : random_tensor(ElementType::kF32, dims, random));
        }
        return make_case(kNorm, p, std::move(operands));
      },
      {.cases = 200, .must_cover = {"f32_blocks__simd"}});
}

// Sums of a million squares, as over all of a sound's features: rounding does not grow with them.
TEST(Norm, LongRowsOfLikeSignMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        return make_case(kNorm, over({1}), {random_tensor(ElementType::kF32, {1, 1'000'003}, random, 0, 4)});
      },
      {.cases = 1, .must_cover = {"f32_blocks__simd"}});
}

/// Instance, group and layer normalisation of planes and of channels-last images, with their scales and biases.
TEST(Norm, LayoutsOfImagesMatchReference) {
  struct Layout {
    std::vector<int> dims;  ///< of 0: batch, 1: groups, 2: channels of one, 3: height, 4: width
    std::vector<int> axes;
    std::vector<int> scale;  ///< which of dims it has, the others being 1
  };
  const Layout layouts[] = {{{0, 2, 3, 4}, {2, 3}, {1}},
                            {{0, 1, 2, 3, 4}, {2, 3, 4}, {1, 2}},
                            {{0, 1, 2, 3, 4}, {2, 3, 4}, {2}},
                            {{0, 3, 4, 2}, {1, 2}, {3}},
                            {{0, 2, 3, 4}, {1}, {1}},
                            {{0, 2, 4}, {1, 2}, {1}},
                            {{0, 2, 3, 4}, {1, 2, 3}, {1}},
                            {{0, 3, 4, 2}, {1, 2}, {0, 3}},
                            {{0, 3, 4, 1, 2}, {1, 2, 4}, {3, 4}},
                            {{0, 3, 4, 1, 2}, {1, 2, 4}, {}},
                            {{0, 3, 4, 2}, {1, 2, 3}, {3}},
                            {{0, 3, 2}, {0, 1, 2}, {2}}};
  expect_variants_match_reference(
      [&](Random& random) {
        const std::int64_t sizes[] = {random_int(random, 1, 3), random_int(random, 1, 4), random_int(random, 1, 40),
                                      random_int(random, 1, 12), random_int(random, 1, 12)};
        const Layout& layout = layouts[random_int(random, 0, std::ssize(layouts) - 1)];
        NormParams p;
        std::vector<std::int64_t> dims;
        for (const int i : layout.dims) dims.push_back(sizes[i]);
        for (const int axis : layout.axes) p.axes.v[p.axes.size++] = axis;
        std::vector<std::int64_t> own(dims.size(), 1);
        for (const int axis : layout.scale) own[static_cast<std::size_t>(axis)] = dims[static_cast<std::size_t>(axis)];
        return make_case(
            kNorm, p,
            {random_tensor(ElementType::kF32, dims, random, -3, 5), random_tensor(ElementType::kF32, own, random),
             random_tensor(ElementType::kF32, own, random)});
      },
      {.cases = 200, .must_cover = {"f32_blocks__simd", "f32_groups__simd", "f32_groups_of_any_size__simd"}});
}

// A sequence whose length changes has one kernel for all lengths: one that is fast must take a single frame, too.
TEST(Norm, GroupsOfSequencesOfAnyLengthHaveOneKernel) {
  Random random(3);
  const auto groups = [&](std::int64_t length) {
    return make_case(kNorm, over({1, 3}),
                     {random_tensor(ElementType::kF32, {1, length, 4, 8}, random),
                      random_tensor(ElementType::kF32, {4, 8}, random)});
  };
  const auto single = [&](std::int64_t length) {
    return make_case(
        kNorm, over({1, 2}),
        {random_tensor(ElementType::kF32, {1, length, 32}, random), random_tensor(ElementType::kF32, {32}, random)});
  };
  const auto serves_all = [&](const KernelVariant& variant) {
    return std::ranges::all_of(std::initializer_list<std::int64_t>{1, 2, 40}, [&](std::int64_t length) {
      return variant_supports(groups(length), variant) && variant_supports(single(length), variant);
    });
  };
  const auto fastest = std::ranges::find_if(kNorm.variants, serves_all);
  ASSERT_NE(fastest, kNorm.variants.end());
  EXPECT_EQ(&*fastest == &reference_variant(kNorm), kNorm.variants.size() == 1) << fastest->name;
}

// Sums of as many rows as a minute of sound has: rounding does not grow with them.
TEST(Norm, ManyRowsOfGroupsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        return make_case(kNorm, over({0, 2}), {random_tensor(ElementType::kF32, {100'003, 3, 7}, random, 0, 4)});
      },
      {.cases = 1, .must_cover = {"f32_groups__simd"}});
}

TEST(Norm, ReferenceAgreesWithTheDefinitionInTwoDimensions) {
  Random random(2);
  for (int round = 0; round < 40; ++round) {
    const auto dims = random_dims(random, 2, 1, 6);
    const TestTensor x = random_tensor(ElementType::kF32, dims, random, -3, 5);
    const TestTensor scale = random_tensor(ElementType::kF32, {dims[0], 1}, random);
    const TestTensor bias = random_tensor(ElementType::kF32, {dims[1]}, random);
    const Outcome y = run_reference(make_case(kNorm, over({0}), {x, scale, bias}));
    std::vector<float> expected(static_cast<std::size_t>(dims[0] * dims[1]));
    for (std::size_t c = 0; c < static_cast<std::size_t>(dims[1]); ++c) {
      const auto rows = static_cast<std::size_t>(dims[0]);
      const auto columns = static_cast<std::size_t>(dims[1]);
      double mean = 0;
      double variance = 0;
      for (std::size_t r = 0; r < rows; ++r) mean += x.to_doubles()[r * columns + c] / static_cast<double>(rows);
      for (std::size_t r = 0; r < rows; ++r)
        variance += std::pow(x.to_doubles()[r * columns + c] - mean, 2) / static_cast<double>(rows);
      for (std::size_t r = 0; r < rows; ++r)
        expected[r * columns + c] = static_cast<float>((x.to_doubles()[r * columns + c] - mean) /
                                                           std::sqrt(variance + 1e-5) * scale.to_doubles()[r] +
                                                       bias.to_doubles()[c]);
    }
    expect_near(y.outputs[0].values<float>(), expected);
  }
}

TEST(Norm, RefusesHostileParameters) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<float>({2, 2}, {1, 2, 3, 4});
  const auto refused = [&](const NormParams& p, std::vector<Operand> operands) {
    return !infer_case(make_case(kNorm, p, std::move(operands)), &outputs).ok();
  };
  EXPECT_TRUE(refused(over({2}), {x}));
  EXPECT_TRUE(refused(over({-1}), {x}));
  EXPECT_TRUE(refused(over({1, 0}), {x}));
  EXPECT_TRUE(refused(over({1, 1}), {x}));
  EXPECT_TRUE(refused(over({1}, 2), {x}));
  EXPECT_TRUE(refused(over({1}), {x, tensor_of<float>({3}, {1, 2, 3})}));
  EXPECT_TRUE(refused(over({1}), {x, tensor_of<float>({1, 1, 1}, {1})}));
  EXPECT_TRUE(refused(over({1}), {x, tensor_of<std::int32_t>({2}, {1, 2})}));
  NormParams p = over({1});
  p.axes.size = 9;
  EXPECT_TRUE(refused(p, {x}));
  p = over({1});
  p.epsilon = -1;
  EXPECT_TRUE(refused(p, {x}));
  p.epsilon = std::nanf("");
  EXPECT_TRUE(refused(p, {x}));
}

}  // namespace
}  // namespace bantam::ops
