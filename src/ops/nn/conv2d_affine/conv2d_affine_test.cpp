#include "ops/nn/conv2d_affine/conv2d_affine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/elementwise/quantize/quantize.h"
#include "ops/testing/affine_form.h"
#include "ops/testing/harness.h"
#include "ops/testing/large_window.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary
using ::testing::ElementsAre;

TEST(Conv2dAffine, SubtractsBothZeroPointsAndPadsWithNothing) {
  // (200 - 128) * (5 - 3) = 144 where the tap lies inside; the padding's tap counts nothing.
  const Outcome y = run_reference(
      make_case(kConv2dAffine, Conv2dAffineParams{.pad_left = 1, .form = form_to(ElementType::kI32, 128, 3)},
                {tensor_of<std::uint8_t>({1, 1, 1, 1}, {200}), tensor_of<std::uint8_t>({1, 1, 2, 1}, {77, 5})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<std::int32_t>(), ElementsAre(144));
}

TEST(Conv2dAffine, RoundsHalvesToEvenAndSaturates) {
  // Sums 1, 3, 5, 300 times 0.5: 0.5 -> 0, 1.5 -> 2, 2.5 -> 2, 150 -> 127 after the zero point 1 is added.
  const Outcome y = run_reference(
      make_case(kConv2dAffine, Conv2dAffineParams{.form = form_to(ElementType::kI8, 0, 0, 1)},
                {tensor_of<std::int8_t>({1, 1, 4, 1}, {1, 3, 5, 100}), tensor_of<std::int8_t>({1, 1, 1, 1}, {1}),
                 tensor_of<std::int32_t>({1}, {0}), tensor_of<float>({1}, {0.5F})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<std::int8_t>(), ElementsAre(1, 3, 3, 51));
}

TEST(Conv2dAffine, RealResultsAreScaledPerChannelAndActivated) {
  Conv2dAffineParams p{.form = form_to(ElementType::kF32)};
  p.form.activation = {UnaryFunction::kRelu, 0.0F, 0.0F};
  const Outcome y = run_reference(
      make_case(kConv2dAffine, p,
                {tensor_of<std::uint8_t>({1, 1, 1, 1}, {200}), tensor_of<std::int8_t>({2, 1, 1, 1}, {1, -1}),
                 tensor_of<float>({2}, {0.5F, 0.25F}), tensor_of<float>({2}, {0.5F, 2.0F})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(100.5F, 0.0F));
}

TEST(Conv2dAffine, QuantisesTheResultOfAnActivation) {
  // Sums 8, -4, -100 times 0.5 plus 1: 5, -1, -49; leaky relu: 5, -0.5, -24.5; over 0.5 plus 10: 20, 9, -39, not below
  // 0.
  Conv2dAffineParams p{.form = form_to(ElementType::kU8, 0, 0, 10)};
  p.form.activation = {UnaryFunction::kLeakyRelu, 0.5F, 0.0F};
  p.form.output_scale = 0.5F;
  const Outcome y = run_reference(
      make_case(kConv2dAffine, p,
                {tensor_of<std::int8_t>({1, 1, 3, 1}, {8, -4, -100}), tensor_of<std::int8_t>({1, 1, 1, 1}, {1}),
                 tensor_of<float>({1}, {1.0F}), tensor_of<float>({1}, {0.5F})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<std::uint8_t>(), ElementsAre(20, 9, 0));
}

TEST(Conv2dAffine, RefusesWhatDoesNotFit) {
  const auto x = tensor_of<std::int8_t>({1, 1, 1, 1}, {4});
  const auto w = tensor_of<std::int8_t>({1, 1, 1, 1}, {4});
  const auto scale = tensor_of<float>({1}, {1.0F});
  const auto ok = [&](const AffineForm& form, std::vector<Operand> more) {
    std::vector<Operand> operands{x, w};
    operands.insert(operands.end(), more.begin(), more.end());
    return run_reference(make_case(kConv2dAffine, Conv2dAffineParams{.form = form}, operands)).status.ok();
  };
  EXPECT_TRUE(ok(form_to(ElementType::kI8), {absent(), scale}));
  EXPECT_FALSE(ok(form_to(ElementType::kI8), {})) << "no scale";
  EXPECT_FALSE(ok(form_to(ElementType::kI32), {absent(), scale})) << "a scale of sums";
  EXPECT_FALSE(ok(form_to(ElementType::kI16), {absent(), scale}));
  EXPECT_FALSE(ok(form_to(ElementType::kI8, 128), {absent(), scale}));
  EXPECT_FALSE(ok(form_to(ElementType::kU8, 0, 0, -1), {absent(), scale}));
  EXPECT_FALSE(ok(form_to(ElementType::kI8), {absent(), tensor_of<float>({2}, {1, 1})}));
  EXPECT_FALSE(ok(form_to(ElementType::kI8), {tensor_of<float>({1}, {1}), scale})) << "real bias of integers";
  EXPECT_FALSE(ok(form_to(ElementType::kI8), {absent(), scale, tensor_of<std::uint8_t>({1}, {1})})) << "type";
  EXPECT_FALSE(ok(form_to(ElementType::kI8), {absent(), scale, absent(), tensor_of<std::int8_t>({2}, {1, 1})}));
  AffineForm activated = form_to(ElementType::kI8);
  activated.activation = {UnaryFunction::kHardSwish, 0.0F, 0.0F};
  EXPECT_TRUE(ok(activated, {tensor_of<float>({1}, {1}), scale}));
  EXPECT_FALSE(ok(activated, {tensor_of<std::int32_t>({1}, {1}), scale})) << "integer bias of real numbers";
  for (const float output_scale : {0.0F, -1.0F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    activated.output_scale = output_scale;
    EXPECT_FALSE(ok(activated, {absent(), scale})) << output_scale;
  }
}

/// Those that are the same to the bit in all variants.
Activation exact_activation(Random& random) {
  constexpr Activation kActivations[] = {{UnaryFunction::kRelu, 0.0F, 0.0F},
                                         {UnaryFunction::kClip, -2.0F, 3.0F},
                                         {UnaryFunction::kLeakyRelu, 0.1F, 0.0F},
                                         {UnaryFunction::kHardSigmoid, 0.2F, 0.5F},
                                         {UnaryFunction::kHardSwish, 0.0F, 0.0F}};
  return kActivations[random() % std::size(kActivations)];
}

/// A random convolution that infer accepts; sizes around the kernels' tiles and vectors.
OpCase random_conv2d_affine_case(Random& random, bool depthwise) {
  const auto small = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  constexpr ElementType kResults[] = {ElementType::kI8, ElementType::kU8, ElementType::kI32, ElementType::kF32};
  const ElementType to = kResults[random() % 4];
  const ElementType x_type = random() % 2 == 0 ? ElementType::kI8 : ElementType::kU8;
  const ElementType w_type = random() % 2 == 0 ? ElementType::kI8 : ElementType::kU8;
  const auto zero_of = [&](ElementType type) { return type == ElementType::kU8 ? small(0, 255) : small(-128, 127); };
  Conv2dAffineParams p;
  p.stride_h = small(1, 3);
  p.stride_w = small(1, 3);
  p.dilation_w = small(0, 2) == 0 ? 2 : 1;
  p.pad_top = small(0, 2);
  p.pad_left = small(0, 2);
  p.pad_bottom = small(0, 2);
  p.pad_right = small(0, 2);
  p.form = form_to(to, zero_of(x_type), random() % 2 == 0 ? 0 : zero_of(w_type));
  if (to == ElementType::kI8 || to == ElementType::kU8) {
    p.form.output_zero_point = zero_of(to);
    p.form.maximum = small(to == ElementType::kU8 ? 128 : 0, to == ElementType::kU8 ? 255 : 127);
    if (random() % 2 == 0) p.form.activation = exact_activation(random);
    p.form.output_scale = std::uniform_real_distribution<float>(0.05F, 5.0F)(random);
  } else if (to == ElementType::kF32 && random() % 2 == 0) {
    p.form.activation = {UnaryFunction::kRelu, 0.0F, 0.0F};
  }
  const std::int64_t per_group = depthwise ? 1 : random_int(random, 1, random() % 3 == 0 ? 40 : 5);
  p.groups = depthwise ? small(4, random() % 4 == 0 ? 150 : 70) : (random() % 4 == 0 ? small(2, 3) : 1);
  const std::int64_t oc = p.groups * (depthwise ? 1 : random_int(random, 1, random() % 2 == 0 ? 70 : 9));
  const std::int64_t kh = random_int(random, 1, depthwise && random() % 3 == 0 ? 9 : 4);
  const std::int64_t kw = random_int(random, 1, 4);
  const std::int64_t h = kh + random_int(random, 0, 7);
  std::int64_t w = (kw - 1) * p.dilation_w + random_int(random, 1, random() % 3 == 0 ? 60 : 12);
  if (small(0, 15) == 0) {  // nothing but padding
    p.pad_left = static_cast<std::int32_t>(w);
    w = 0;
  }
  std::vector<Operand> inputs;
  const std::vector<std::int64_t> x_dims{random_int(random, 1, 2), h, w, per_group * p.groups};
  inputs.emplace_back(random() % 2 == 0 ? random_tensor(x_type, x_dims, random, -128, 255)
                                        : random_activations(x_type, x_dims, random, p.form.input_zero_point));
  inputs.push_back(constant(random_tensor(w_type, {oc, kh, kw, per_group}, random, -128, 255)));
  const ElementType bias = p.form.has_real_bias() ? ElementType::kF32 : ElementType::kI32;
  const double most = p.form.has_real_bias() ? 50 : 5000;
  inputs.push_back(random() % 2 == 0 ? absent() : constant(random_tensor(bias, {oc}, random, -most, most)));
  const std::int64_t scales = random() % 2 == 0 ? 1 : oc;
  inputs.push_back(
      to == ElementType::kI32 ? absent() : constant(random_tensor(ElementType::kF32, {scales}, random, 0.0001, 0.01)));
  if (random() % 4 == 0) {
    inputs.emplace_back(random_tensor(x_type, {1}, random, 0, 127));
    inputs.emplace_back(random_tensor(w_type, {random() % 2 == 0 ? 1 : oc}, random, 0, 127));
  }
  return make_case(kConv2dAffine, p, std::move(inputs));
}

TEST(Conv2dAffine, VariantsMatchReference) {
  testing::expect_variants_match_reference([](Random& random) { return random_conv2d_affine_case(random, false); },
                                           {.cases = 120, .must_cover = {"i8_gemm__simd"}});
}

TEST(Conv2dAffine, PointwiseVariantsMatchReference) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const ElementType type = random() % 2 == 0 ? ElementType::kI8 : ElementType::kU8;
        const std::int64_t c = random_int(random, 1, 40);
        Conv2dAffineParams p{.form = form_to(type, 5, random() % 2 == 0 ? 0 : 3)};
        return make_case(
            kConv2dAffine, p,
            {random_tensor(type, {random_int(random, 1, 2), random_int(random, 1, 9), 7, c}, random, 0, 127),
             constant(random_tensor(ElementType::kI8, {random_int(random, 1, 40), 1, 1, c}, random, -128, 127)),
             absent(), tensor_of<float>({1}, {0.01F})});
      },
      {.cases = 20, .must_cover = {"i8_gemm__simd"}});
}

/// Windows whose rows have no whole quads, of which some kernels take lines with weights of their own.
TEST(Conv2dAffine, WindowsOfFewInputsMatchReference) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const auto small = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        const ElementType type = random() % 2 == 0 ? ElementType::kI8 : ElementType::kU8;
        const std::int64_t c = random_int(random, 1, 7);
        Conv2dAffineParams p{.form = form_to(type, 5, 0)};
        p.stride_h = small(1, 2);
        p.stride_w = small(1, 3);
        p.dilation_h = small(0, 3) == 0 ? 2 : 1;
        p.pad_top = p.pad_left = small(0, 3);
        p.pad_bottom = p.pad_right = small(0, 3);
        return make_case(
            kConv2dAffine, p,
            {random_tensor(type, {random_int(random, 1, 2), random_int(random, 13, 24), random_int(random, 7, 40), c},
                           random, type == ElementType::kU8 ? 0 : -128, type == ElementType::kU8 ? 255 : 127),
             constant(random_tensor(ElementType::kI8,
                                    {random_int(random, 1, 40), random_int(random, 2, 7), random_int(random, 1, 7), c},
                                    random, -128, 127)),
             absent(), tensor_of<float>({1}, {0.002F})});
      },
      {.cases = 60, .must_cover = {"i8_gemm__simd"}});
}

TEST(Conv2dAffine, TransformedTilesMatchReference) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kU8};
        const auto some = [&](std::int64_t low, std::int64_t high) { return random_int(random, low, high); };
        const ElementType x = kTypes[some(0, 1)];
        const ElementType w = kTypes[some(0, 1)];
        Conv2dAffineParams p{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
        const ElementType results[] = {ElementType::kI8, ElementType::kU8, ElementType::kI32, ElementType::kF32};
        const ElementType to = results[some(0, 3)];
        // Weights may be as far from their zero points as the transform's 16 bits permit, and are so at random.
        const auto zero_of = [&](std::int64_t furthest) {
          return static_cast<std::int32_t>((w == ElementType::kU8 ? 128 : 0) + some(-furthest, furthest));
        };
        p.form = form_to(to, static_cast<std::int32_t>(some(0, 127)), zero_of(some(0, 1) == 0 ? 0 : 99));
        if (to != ElementType::kI32 && some(0, 1) != 0) p.form.activation = {UnaryFunction::kHardSwish};
        p.form.output_scale = 0.5F;
        const std::int64_t c = 16 * some(1, 3);
        const std::int64_t oc = 16 * some(1, 3);
        const bool has_scale = to != ElementType::kI32;
        std::vector<Operand> inputs{
            random_tensor(x, {some(1, 2), some(3, 14), some(3, 14), c}, random, -128, 255),
            constant(random_tensor(w, {oc, 3, 3, c}, random, -128, 255)), absent(),
            has_scale ? constant(random_tensor(ElementType::kF32, {oc}, random, 0.0001, 0.001)) : absent()};
        if (some(0, 1) != 0) {
          inputs.push_back(absent());
          inputs.push_back(constant(random_tensor(w, {some(0, 1) == 0 ? 1 : oc}, random, zero_of(0), zero_of(99))));
        }
        return make_case(kConv2dAffine, p, std::move(inputs));
      },
      {.cases = 24, .must_cover = {"i8_winograd__simd"}});
}

/// Weights whose bytes have no zero point as int8.
OpCase random_symmetric_case(Random& random, std::int32_t groups, std::int64_t inputs, std::int64_t outputs) {
  constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kU8, ElementType::kI32, ElementType::kF32};
  const auto some = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  const ElementType x = kTypes[some(0, 1)];
  const ElementType w = kTypes[some(0, 1)];
  const ElementType to = kTypes[some(0, 3)];
  Conv2dAffineParams p{.stride_w = some(1, 2), .pad_top = some(0, 2), .pad_left = some(0, 2)};
  p.groups = groups;
  p.form = form_to(to, some(0, 127), w == ElementType::kU8 ? 128 : 0);
  const bool activates = to != ElementType::kI32 && some(0, 1) != 0;
  if (activates) p.form.activation = exact_activation(random);
  const std::int64_t oc = groups * outputs;
  const bool real_bias = p.form.has_real_bias();
  return make_case(
      kConv2dAffine, p,
      {random_tensor(x, {some(1, 2), some(3, 14), some(3, 30), p.groups * inputs}, random, 0, 127),
       constant(random_tensor(w, {oc, some(1, 3), some(2, 3), inputs}, random, 0, 127)),
       constant(random_tensor(real_bias ? ElementType::kF32 : ElementType::kI32, {oc}, random, -20, 20)),
       to != ElementType::kI32 ? constant(random_tensor(ElementType::kF32, {oc}, random, 0.0001, 0.001)) : absent()});
}

TEST(Conv2dAffine, NarrowGroupsMatchReference) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const std::int64_t outputs = random() % 3 == 0 ? 4 * random_int(random, 3, 12) : random_int(random, 1, 8);
        return random_symmetric_case(random, static_cast<std::int32_t>(random_int(random, 2, 20)),
                                     random_int(random, 1, 9), outputs);
      },
      {.cases = 120, .must_cover = {"i8_narrow_groups__simd"}});
}

TEST(Conv2dAffine, FewOutputsMatchReference) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        return random_symmetric_case(random, 1, random_int(random, 8, 90), random_int(random, 1, 8));
      },
      {.cases = 120, .must_cover = {"i8_few_outputs__simd"}});
}

TEST(Conv2dAffine, DepthwiseVariantsMatchReference) {
  testing::expect_variants_match_reference([](Random& random) { return random_conv2d_affine_case(random, true); },
                                           {.cases = 80, .must_cover = {"i8_depthwise__simd", "i8_gemm__simd"}});
}

// One row of so many samples that threads cut it into columns.
TEST(Conv2dAffine, DepthwiseVariantsMatchReferenceOnSounds) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const auto some = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        Conv2dAffineParams p{.stride_w = some(1, 3), .dilation_w = some(1, 20)};
        p.pad_left = some(0, 1) * some(0, 60);
        p.pad_right = some(0, 1) * some(0, 60);
        p.groups = some(40, 90);
        p.form = form_to(ElementType::kU8, some(0, 255), 0);
        return make_case(kConv2dAffine, p,
                         {random_tensor(ElementType::kU8, {1, 1, some(200, 600), p.groups}, random, 0, 255),
                          constant(random_tensor(ElementType::kI8, {p.groups, 1, some(2, 9), 1}, random, -127, 127)),
                          absent(), constant(random_tensor(ElementType::kF32, {p.groups}, random, 0.0001, 0.01))});
      },
      {.cases = 20, .must_cover = {"i8_depthwise__simd"}});
}

// As for depthwise_conv2d.
TEST(Conv2dAffine, DepthwiseVariantsMatchReferenceOverWideRowsOfRoundChannels) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const auto some = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kU8};
        const ElementType to = kTypes[some(0, 1)];
        const std::int64_t c = some(0, 2) == 0 ? some(4, 130) : 16 * some(1, 9);
        const std::int64_t side = 1 + 2 * some(1, 2);
        const std::int64_t columns = some(0, 3) == 0 ? some(1, 8) : side;
        Conv2dAffineParams p{.stride_h = some(1, 2), .stride_w = some(0, 2) == 0 ? some(2, 3) : 1};
        p.pad_top = p.pad_left = p.pad_bottom = p.pad_right = some(0, static_cast<std::int32_t>(side / 2));
        p.groups = static_cast<std::int32_t>(c);
        p.form = form_to(to, some(0, 127), 0);
        if (some(0, 1) != 0) p.form.activation = exact_activation(random);
        const bool real_bias = p.form.has_real_bias();
        return make_case(
            kConv2dAffine, p,
            {random_tensor(kTypes[some(0, 1)], {1, side + some(0, 5), columns + some(0, 90), c}, random, 0, 127),
             constant(random_tensor(ElementType::kI8, {c, side, columns, 1}, random, -127, 127)),
             constant(random_tensor(real_bias ? ElementType::kF32 : ElementType::kI32, {c}, random, -20, 20)),
             constant(random_tensor(ElementType::kF32, {c}, random, 0.001, 0.1))});
      },
      {.cases = 160, .must_cover = {"i8_depthwise__simd"}});
}

// What weights quantised from the least to the largest of a layer come to, see passes/centre_weights.cpp.
TEST(Conv2dAffine, FewChannelsWithZeroPointsMatchReference) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const auto some = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kU8};
        const bool depthwise = some(0, 1) != 0;
        const std::int32_t c = some(0, 2) == 0 ? some(4, 200) : 16 * some(1, 12);
        const std::int32_t side = depthwise ? 3 : some(1, 2);
        Conv2dAffineParams p{.stride_h = some(1, 2), .stride_w = some(1, 2), .pad_top = side / 2, .pad_left = side / 2};
        p.groups = depthwise ? c : 1;
        p.form = form_to(kTypes[some(0, 1)], some(0, 127), 0);
        if (some(0, 2) == 0) p.form.activation = exact_activation(random);
        const std::int64_t inputs = depthwise ? 1 : some(1, 40);
        std::vector<std::int8_t> zeros(static_cast<std::size_t>(c));
        for (int i = some(0, 3); i > 0; --i)
          zeros[static_cast<std::size_t>(some(0, c - 1))] = static_cast<std::int8_t>(-some(1, 100));
        return make_case(kConv2dAffine, p,
                         {random_tensor(kTypes[some(0, 1)],
                                        {some(1, 2), some(3, 9), some(3, 40), depthwise ? c : inputs}, random, 0, 127),
                          constant(random_tensor(ElementType::kI8, {c, side, side, inputs}, random, -128, 127)),
                          constant(random_tensor(p.form.has_real_bias() ? ElementType::kF32 : ElementType::kI32, {c},
                                                 random, -20, 20)),
                          constant(random_tensor(ElementType::kF32, {c}, random, 0.001, 0.1)), absent(),
                          constant(tensor_of<std::int8_t>({c}, zeros))});
      },
      {.cases = 120, .must_cover = {"i8_depthwise__simd", "i8_gemm__simd"}});
}

TEST(Conv2dAffine, DepthwiseVariantsMatchReferenceWithLargeWindows) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kU8};
        const auto some = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        const testing::LargeWindow window = testing::random_large_window(random);
        Conv2dAffineParams p{window.stride_h,
                             window.stride_w,
                             window.dilation_h,
                             window.dilation_w,
                             window.pad,
                             window.pad,
                             window.pad,
                             window.pad,
                             1,
                             {}};
        p.groups = static_cast<std::int32_t>(window.channels);
        p.form = form_to(kTypes[some(0, 1)], some(0, 127), 0);
        if (some(0, 1) != 0) p.form.activation = exact_activation(random);
        const std::int64_t c = window.channels;
        return make_case(
            kConv2dAffine, p,
            {random_tensor(kTypes[some(0, 1)], {some(1, 2), window.h, window.w, c}, random, 0, 127),
             constant(random_tensor(ElementType::kI8, {c, window.kernel_h, window.kernel_w, 1}, random, -127, 127)),
             constant(
                 random_tensor(p.form.has_real_bias() ? ElementType::kF32 : ElementType::kI32, {c}, random, -20, 20)),
             constant(random_tensor(ElementType::kF32, {c}, random, 0.0001, 0.01))});
      },
      {.cases = 40, .must_cover = {"i8_depthwise__simd"}});
}

/// The convolution with f32 results, and what quantises them.
std::pair<OpCase, OpCase> unfused(const OpCase& fused) {
  auto p = *reinterpret_cast<const Conv2dAffineParams*>(fused.params.data());
  const AffineForm form = p.form;
  p.form.to = ElementType::kF32;
  const auto zero = form.to == ElementType::kU8
                        ? tensor_of<std::uint8_t>({}, {static_cast<std::uint8_t>(form.output_zero_point)})
                        : tensor_of<std::int8_t>({}, {static_cast<std::int8_t>(form.output_zero_point)});
  OpCase real = make_case(kConv2dAffine, p, fused.inputs);
  return {real, make_case(kQuantize, QuantizeParams{form.to, 0, 0},
                          {run_reference(real).outputs[0], tensor_of<float>({}, {form.output_scale}), zero})};
}

int most_steps_between(const TestTensor& a, const TestTensor& b) {
  int most = 0;
  const auto look = [&](const auto& x, const auto& y) {
    for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(int{x[i]} - int{y[i]}));
  };
  if (a.desc().type == ElementType::kU8) {
    look(a.values<std::uint8_t>(), b.values<std::uint8_t>());
  } else {
    look(a.values<std::int8_t>(), b.values<std::int8_t>());
  }
  return most;
}

TEST(Conv2dAffine, QuantisedActivationsAreThoseOfTheRealResultToTheBit) {
  constexpr UnaryFunction kFunctions[] = {
      UnaryFunction::kClip, UnaryFunction::kLeakyRelu,   UnaryFunction::kSigmoid, UnaryFunction::kTanh,
      UnaryFunction::kElu,  UnaryFunction::kHardSigmoid, UnaryFunction::kSilu,    UnaryFunction::kGelu,
      UnaryFunction::kRelu, UnaryFunction::kHardSwish};
  for (std::uint64_t seed = 1; seed <= 4 * std::size(kFunctions); ++seed) {
    Random random(seed);
    const bool is_unsigned = random() % 2 == 0;
    Conv2dAffineParams p{.form =
                             form_to(is_unsigned ? ElementType::kU8 : ElementType::kI8, 3, 0, is_unsigned ? 117 : -20)};
    p.form.activation = {kFunctions[seed % std::size(kFunctions)], 0.25F, 1.5F};
    p.form.output_scale = std::uniform_real_distribution<float>(0.005F, 0.05F)(random);
    const std::int64_t c = random_int(random, 1, 40);
    const bool depthwise = random() % 2 == 0 && c >= 4;
    p.groups = depthwise ? static_cast<std::int32_t>(c) : 1;
    const OpCase fused =
        make_case(kConv2dAffine, p,
                  {random_tensor(ElementType::kI8, {1, 3, 4, depthwise ? c : 9}, random, -128, 127),
                   constant(random_tensor(ElementType::kI8, {c, 2, 1, depthwise ? 1 : 9}, random, -128, 127)),
                   constant(random_tensor(ElementType::kF32, {c}, random, -2, 2)),
                   constant(random_tensor(ElementType::kF32, {1}, random, 0.0001, 0.0004))});
    const Outcome expected = run_reference(unfused(fused).second);
    const Outcome actual = run_reference(fused);
    ASSERT_TRUE(actual.status.ok() && expected.status.ok());
    EXPECT_EQ(testing::compare(actual.outputs[0], expected.outputs[0], {}), "") << "seed " << seed;
    for (const KernelVariant& variant : kConv2dAffine.variants) {
      if (!testing::variant_supports(fused, variant)) continue;
      EXPECT_LE(most_steps_between(testing::run_variant(fused, variant).outputs[0], expected.outputs[0]), 1)
          << variant.name << ", seed " << seed;
    }
  }
}

TEST(Conv2dAffine, ScalesThatAreNoNumbersMeanTheSameInEveryVariant) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        constexpr float kInfinity = std::numeric_limits<float>::infinity();
        const float scales[] = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity, 0.01F};
        const std::int64_t groups = random() % 2 == 0 ? 4 : 1;
        Conv2dAffineParams p{.groups = static_cast<std::int32_t>(groups), .form = form_to(ElementType::kU8, 5, 0)};
        // Kernels have a shorter way for usual scales.
        if (random() % 2 == 0) p.form.activation.function = UnaryFunction::kHardSwish;
        p.form.output_scale = 0.02F;
        return make_case(
            kConv2dAffine, p,
            {random_tensor(ElementType::kU8, {1, 3, 5, 4}, random, 4, 6),
             constant(random_tensor(ElementType::kI8, {4, 1, 1, groups == 4 ? 1 : 4}, random, -1, 1)), absent(),
             constant(tensor_of<float>({4}, std::vector<float>(std::begin(scales), std::end(scales))))});
      },
      {.cases = 40, .must_cover = {"i8_gemm__simd", "i8_depthwise__simd"}});
}

TEST(Conv2dAffine, IntegerResultsAreExactInEveryVariant) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const OpCase c = random_conv2d_affine_case(random, seed % 2 == 0);
    if (reinterpret_cast<const Conv2dAffineParams*>(c.params.data())->form.to == ElementType::kF32) continue;
    const Outcome expected = run_reference(c);
    for (const KernelVariant& variant : kConv2dAffine.variants) {
      if (!testing::variant_supports(c, variant)) continue;
      EXPECT_EQ(testing::compare(testing::run_variant(c, variant).outputs[0], expected.outputs[0], {}), "")
          << variant.name << ", seed " << seed;
      ++compared;
    }
  }
  EXPECT_GT(compared, 60);
}

}  // namespace
}  // namespace bantam::ops
