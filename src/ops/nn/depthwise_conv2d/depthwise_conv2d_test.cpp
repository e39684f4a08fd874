#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "ops/testing/harness.h"
#include "ops/testing/large_window.h"

namespace bantam::ops {
namespace {

using testing::absent;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using testing::make_case;
using testing::OpCase;
using testing::Outcome;
using ::testing::Pointwise;
using testing::Random;
using testing::random_int;
using testing::random_tensor;
using testing::run_reference;
using testing::tensor_of;
using testing::TestTensor;

TEST(DepthwiseConv2d, EveryChannelHasItsOwnKernel) {
  // Two channels, 1x2 kernel, padding 1 on the left.
  const Outcome y =
      run_reference(make_case(kDepthwiseConv2d, Conv2dParams{.pad_left = 1},
                              {tensor_of<float>({1, 1, 2, 2}, {1, 2, 3, 4}),
                               tensor_of<float>({1, 2, 2}, {1, 10, 100, 1000}), tensor_of<float>({2}, {0.5F, 0})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(100.5F, 2000, 301.5F, 4020));
}

TEST(DepthwiseConv2d, MultiplierRepeatsInputChannels) {
  const Outcome y = run_reference(
      make_case(kDepthwiseConv2d, Conv2dParams{},
                {tensor_of<float>({1, 1, 1, 2}, {1, 2}), tensor_of<float>({1, 1, 4}, {1, 10, 100, 1000})}));
  EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(1, 10, 200, 2000));
}

TEST(DepthwiseConv2d, Int8RequantisesPerChannel) {
  // Channel 0: (10 - 2) * 5 = 40, halved; channel 1: (-10 - 2) * 3 + 1 = -35, halved is -17.5 -> -17 (ties go up).
  const Outcome y = run_reference(
      make_case(kDepthwiseConv2d, Conv2dParams{.input_zero_point = 2, .output_zero_point = 1},
                {tensor_of<std::int8_t>({1, 1, 1, 2}, {10, -10}), tensor_of<std::int8_t>({1, 1, 2}, {5, 3}),
                 tensor_of<std::int32_t>({2}, {0, 1}), tensor_of<std::int32_t>({2}, {1 << 30, 1 << 30}),
                 tensor_of<std::int32_t>({2}, {0, 0})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<std::int8_t>(), ElementsAre(21, -16));
}

TEST(DepthwiseConv2d, HybridScalesPerChannel) {
  const Outcome y = run_reference(
      make_case(kDepthwiseConv2d, Conv2dParams{.activation = {UnaryFunction::kRelu, 0, 0}},
                {tensor_of<float>({1, 1, 1, 2}, {1.27F, -0.5F}), tensor_of<std::int8_t>({1, 1, 2}, {3, 4}), absent(),
                 tensor_of<float>({2}, {2.0F, 1.0F})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<float>(), Pointwise(FloatNear(1e-5F), {127 * 3 * 0.01F * 2, 0.0F}));
}

TEST(DepthwiseConv2d, RefusesWhatDoesNotFit) {
  const auto status = [](Conv2dParams p, const std::vector<std::int64_t>& w) {
    std::vector<TensorDesc> outputs;
    return testing::infer_case(make_case(kDepthwiseConv2d, p,
                                         {TestTensor(testing::dense_desc(ElementType::kF32, {1, 4, 4, 3})),
                                          TestTensor(testing::dense_desc(ElementType::kF32, w))}),
                               &outputs);
  };
  EXPECT_TRUE(status({}, {3, 3, 6}).ok());
  EXPECT_FALSE(status({}, {3, 3, 4}).ok());
  EXPECT_FALSE(status({}, {1, 3, 3, 3}).ok());
  EXPECT_FALSE(status({.groups = 3}, {3, 3, 3}).ok());
  EXPECT_FALSE(status({.stride_h = 0}, {3, 3, 3}).ok());
  EXPECT_FALSE(status({}, {5, 3, 3}).ok());
}

/// Window parameters and image sizes that fit together, small and odd.
struct RandomWindow {
  Conv2dParams params;
  std::int64_t kh, kw, h, w;

  explicit RandomWindow(Random& random) {
    const auto small = [&](std::int64_t low, std::int64_t high) {
      return static_cast<std::int32_t>(random_int(random, low, high));
    };
    params.stride_h = small(1, 2);
    params.stride_w = small(1, 3);
    params.dilation_h = small(0, 3) == 0 ? 2 : 1;
    params.dilation_w = small(0, 3) == 0 ? small(2, 6) : 1;
    params.pad_top = small(0, 2);
    params.pad_left = small(0, 4);
    params.pad_bottom = small(0, 2);
    params.pad_right = small(0, 4);
    kh = small(1, 5);
    kw = small(0, 1) == 0 ? 3 : small(1, 6);
    h = (kh - 1) * params.dilation_h + small(1, 5);
    w = (kw - 1) * params.dilation_w + small(1, 20);
    if (small(0, 15) == 0) {  // nothing but padding
      params.pad_left = static_cast<std::int32_t>(w);
      w = 0;
    }
  }
};

OpCase random_float_depthwise_conv2d_case(Random& random) {
  RandomWindow window(random);
  constexpr UnaryFunction kFunctions[] = {UnaryFunction::kIdentity, UnaryFunction::kRelu, UnaryFunction::kClip,
                                          UnaryFunction::kSilu};
  window.params.activation = {kFunctions[random_int(random, 0, 3)], -0.5F, 0.75F};
  const std::int64_t c = random_int(random, 1, 50);
  const std::int64_t multiplier = random_int(random, 0, 3) == 0 ? random_int(random, 2, 5) : 1;
  std::vector<testing::Operand> inputs;
  inputs.emplace_back(random_tensor(ElementType::kF32, {random_int(random, 1, 2), window.h, window.w, c}, random));
  inputs.push_back(testing::constant(random_tensor(ElementType::kF32, {window.kh, window.kw, c * multiplier}, random)));
  if (random_int(random, 0, 3) != 0)
    inputs.push_back(testing::constant(random_tensor(ElementType::kF32, {c * multiplier}, random)));
  return make_case(kDepthwiseConv2d, window.params, std::move(inputs));
}

TEST(DepthwiseConv2d, FloatVariantsMatchReference) {
  testing::expect_variants_match_reference(random_float_depthwise_conv2d_case,
                                           {.cases = 150, .must_cover = {"f32_channels__simd"}});
  testing::expect_packing_variants_match_reference(random_float_depthwise_conv2d_case, "f32_multiplied", 60);
}

// Vectors take the pixels of few channels as they come, and zeros where there is no image: of weights that are no
// numbers these may not become results.
TEST(DepthwiseConv2d, FloatVariantsMatchReferenceOverFewChannels) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const auto some = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        constexpr UnaryFunction kFunctions[] = {UnaryFunction::kIdentity, UnaryFunction::kClip, UnaryFunction::kSilu};
        Conv2dParams p{.stride_h = some(1, 3),
                       .stride_w = some(1, 3),
                       .dilation_h = some(1, 2),
                       .dilation_w = some(1, 3),
                       .pad_top = some(0, 4),
                       .pad_left = some(0, 6),
                       .pad_bottom = some(0, 4),
                       .pad_right = some(0, 6),
                       .activation = {kFunctions[some(0, 2)], -0.5F, 0.75F}};
        const std::int64_t c = some(1, 4);
        const std::int64_t kh = some(1, 5);
        const std::int64_t kw = some(1, 9);
        std::vector<float> weights(static_cast<std::size_t>(kh * kw * c));
        for (float& weight : weights) weight = static_cast<float>(some(-1000, 1000)) / 1000;
        if (some(0, 5) == 0) {
          weights[random() % weights.size()] = std::numeric_limits<float>::infinity();
          p.activation = {};
        }
        const std::int64_t w = (kw - 1) * p.dilation_w + some(1, some(0, 3) == 0 ? 1500 : 60);
        std::vector<testing::Operand> inputs;
        inputs.emplace_back(
            random_tensor(ElementType::kF32, {some(1, 2), (kh - 1) * p.dilation_h + some(1, 5), w, c}, random));
        inputs.push_back(testing::constant(tensor_of<float>({kh, kw, c}, weights)));
        if (some(0, 2) != 0) inputs.push_back(testing::constant(random_tensor(ElementType::kF32, {c}, random)));
        return make_case(kDepthwiseConv2d, p, std::move(inputs));
      },
      {.cases = 200, .must_cover = {"f32_channels__simd"}});
}

// Windows of 3x3 are computed in strips of columns, several rows of the image at once.
TEST(DepthwiseConv2d, FloatVariantsMatchReferenceInStripsOfSeveralRows) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const auto some = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        const std::int32_t stride = some(1, 2);
        // More padding than a column on a side is no matter of strips.
        const std::int32_t padding = some(0, 2) == 0 ? 4 : 1;
        const Conv2dParams p{.stride_h = stride,
                             .stride_w = stride,
                             .pad_top = some(0, 4),
                             .pad_left = some(0, padding),
                             .pad_bottom = some(0, 4),
                             .pad_right = some(0, padding),
                             .activation = {some(0, 1) == 0 ? UnaryFunction::kRelu : UnaryFunction::kSilu, 0, 0}};
        const std::int64_t c = some(16, 70);
        std::vector<testing::Operand> inputs;
        inputs.emplace_back(
            random_tensor(ElementType::kF32, {some(1, 2), some(3, 21), some(3, 30 * stride), c}, random));
        inputs.push_back(testing::constant(random_tensor(ElementType::kF32, {3, 3, c}, random)));
        if (some(0, 2) != 0) inputs.push_back(testing::constant(random_tensor(ElementType::kF32, {c}, random)));
        return make_case(kDepthwiseConv2d, p, std::move(inputs));
      },
      {.cases = 120, .must_cover = {"f32_channels__simd"}});
}

// The taps of wide windows are gone through in chunks, for tiles of pixels that may reach beyond the image's edges.
TEST(DepthwiseConv2d, FloatVariantsMatchReferenceOverWideWindows) {
  for (std::int32_t taps = 6; taps <= 33; ++taps)
    testing::expect_variants_match_reference(
        [&](Random& random) {
          const auto some = [&](std::int64_t low, std::int64_t high) {
            return static_cast<std::int32_t>(random_int(random, low, high));
          };
          const Conv2dParams p{.stride_h = some(1, 2),
                               .stride_w = some(0, 7) == 0 ? 3 : some(1, 2),
                               .dilation_w = some(0, 7) == 0 ? 2 : 1,
                               .pad_top = some(0, 4),
                               .pad_left = some(0, taps),
                               .pad_bottom = some(0, 4),
                               .pad_right = some(0, taps),
                               .activation = {some(0, 1) == 0 ? UnaryFunction::kRelu : UnaryFunction::kSilu, 0, 0}};
          const std::int64_t rows = some(0, 1) == 0 ? 1 : some(2, 7);
          const std::int64_t least = std::max((taps - 1) * p.dilation_w + 1 - p.pad_left - p.pad_right, 1);
          const std::int64_t c = some(0, 4) == 0 ? some(1, 15) : some(16, 50);
          std::vector<testing::Operand> inputs;
          inputs.emplace_back(
              random_tensor(ElementType::kF32, {some(1, 2), rows + some(0, 9), least + some(0, 50), c}, random));
          inputs.push_back(testing::constant(random_tensor(ElementType::kF32, {rows, taps, c}, random)));
          if (some(0, 2) != 0) inputs.push_back(testing::constant(random_tensor(ElementType::kF32, {c}, random)));
          return make_case(kDepthwiseConv2d, p, std::move(inputs));
        },
        {.cases = 6, .seed = static_cast<std::uint64_t>(100 * taps), .must_cover = {"f32_channels__simd"}});
}

OpCase random_int8_depthwise_conv2d_case(Random& random) {
  RandomWindow window(random);
  window.params.input_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
  window.params.output_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
  window.params.minimum = static_cast<std::int32_t>(random_int(random, -128, 0));
  const std::int64_t c = random_int(random, 1, random_int(random, 0, 3) == 0 ? 150 : 60);
  const std::int64_t out = c * random_int(random, 1, random_int(random, 0, 2) == 0 ? 9 : 1);
  const bool extreme = random_int(random, 0, 4) == 0;
  std::vector<testing::Operand> inputs;
  inputs.emplace_back(
      random_tensor(ElementType::kI8, {random_int(random, 1, 2), window.h, window.w, c}, random, -128, 127));
  // Converters never write a weight of -128, whose products some kernels cannot add in pairs.
  const double least = random_int(random, 0, 2) == 0 ? -128 : -127;
  inputs.push_back(testing::constant(random_tensor(ElementType::kI8, {window.kh, window.kw, out}, random, least, 127)));
  inputs.push_back(random_int(random, 0, 3) == 0
                       ? absent()
                       : testing::constant(random_tensor(ElementType::kI32, {out}, random, -9000, 9000)));
  inputs.push_back(testing::constant(
      random_tensor(ElementType::kI32, {out}, random, extreme ? -2147483648.0 : 0x40000000, 0x7fffffff)));
  inputs.push_back(
      testing::constant(random_tensor(ElementType::kI32, {out}, random, extreme ? -40 : -9, extreme ? 40 : 1)));
  return make_case(kDepthwiseConv2d, window.params, std::move(inputs));
}

TEST(DepthwiseConv2d, Int8VariantsMatchReferenceExactly) {
  testing::expect_variants_match_reference(random_int8_depthwise_conv2d_case,
                                           {.cases = 150, .must_cover = {"i8_channels__simd", "i8_multiplied__simd"}});
}

// Some kernels put several pixels into a vector where channels are few, and several output rows share what is read.
TEST(DepthwiseConv2d, Int8VariantsMatchReferenceOverWideRowsOfRoundChannels) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const auto some = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        const std::int64_t side = 1 + 2 * some(1, 3);
        Conv2dParams p{.stride_h = some(1, 2), .stride_w = some(0, 3) == 0 ? 2 : 1};
        p.pad_top = p.pad_left = p.pad_bottom = p.pad_right = some(0, static_cast<std::int32_t>(side / 2));
        p.dilation_w = some(0, 5) == 0 ? 2 : 1;
        p.input_zero_point = some(-128, 127);
        p.output_zero_point = some(-128, 127);
        const std::int64_t c = some(0, 3) == 0 ? some(16, 130) : 16 * some(1, 9);
        return make_case(
            kDepthwiseConv2d, p,
            {random_tensor(ElementType::kI8, {1, side + some(0, 5), (side - 1) * p.dilation_w + some(1, 70), c}, random,
                           -128, 127),
             testing::constant(random_tensor(ElementType::kI8, {side, side, c}, random, -128, 127)),
             testing::constant(random_tensor(ElementType::kI32, {c}, random, -9000, 9000)),
             testing::constant(random_tensor(ElementType::kI32, {c}, random, 0x40000000, 0x7fffffff)),
             testing::constant(random_tensor(ElementType::kI32, {c}, random, -9, -4))});
      },
      {.cases = 120, .must_cover = {"i8_channels__simd"}});
}

// Blocks of channels that are as wide as a vector allows leave few channels to the last one.
TEST(DepthwiseConv2d, Int8VariantsMatchReferenceWhereTheLastOfManyBlocksIsSmall) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const std::int64_t c = random_int(random, 90, 140);
        Conv2dParams p{.dilation_w = 2, .pad_left = 3, .pad_right = 5};
        p.input_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
        const std::int64_t side = random_int(random, 7, 9);
        return make_case(kDepthwiseConv2d, p,
                         {random_tensor(ElementType::kI8, {1, side + 2, 2 * side + 4, c}, random, -128, 127),
                          testing::constant(random_tensor(ElementType::kI8, {side, side, c}, random, -128, 127)),
                          testing::constant(random_tensor(ElementType::kI32, {c}, random, -9000, 9000)),
                          testing::constant(random_tensor(ElementType::kI32, {c}, random, 0x40000000, 0x7fffffff)),
                          testing::constant(random_tensor(ElementType::kI32, {c}, random, -9, -4))});
      },
      {.cases = 80, .must_cover = {"i8_channels__simd"}});
}

// Rows are interleaved as they lie, and vectors may take whatever channels come; rows and channels that are too many
// for the buffers are cut.
TEST(DepthwiseConv2d, Int8VariantsMatchReferenceOverFewAndManyChannels) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const auto some = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        const bool few = some(0, 1) == 0;
        const std::int64_t c = few ? some(4, 40) : some(100, 700);
        const std::int64_t kh = some(1, 6);
        const std::int64_t kw = some(1, 6);
        Conv2dParams p{.stride_h = some(1, 2), .stride_w = some(0, 2) == 0 ? some(2, 3) : 1};
        p.dilation_w = some(0, 5) == 0 ? 2 : 1;
        p.pad_top = some(0, 2);
        p.pad_left = some(0, 3);
        p.pad_bottom = some(0, 2);
        p.pad_right = some(0, 3);
        p.input_zero_point = some(-128, 127);
        p.output_zero_point = some(-128, 127);
        const std::int64_t wide = few && some(0, 3) == 0 ? 2600 / c : 24;
        return make_case(
            kDepthwiseConv2d, p,
            {random_tensor(ElementType::kI8, {1, kh + some(0, 5), (kw - 1) * p.dilation_w + some(1, wide), c}, random,
                           -128, 127),
             testing::constant(random_tensor(ElementType::kI8, {kh, kw, c}, random, -128, 127)),
             testing::constant(random_tensor(ElementType::kI32, {c}, random, -9000, 9000)),
             testing::constant(random_tensor(ElementType::kI32, {c}, random, 0x40000000, 0x7fffffff)),
             testing::constant(random_tensor(ElementType::kI32, {c}, random, -9, -4))});
      },
      {.cases = 150, .must_cover = {"i8_channels__simd"}});
}

// Rows and columns a dilation apart are computed together; threads share the rows.
TEST(DepthwiseConv2d, Int8VariantsMatchReferenceWithDilationBothWays) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const auto some = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        Conv2dParams p{.stride_h = some(0, 5) == 0 ? 2 : 1,
                       .stride_w = some(0, 5) == 0 ? 2 : 1,
                       .dilation_h = some(1, 6),
                       .dilation_w = some(1, 6)};
        p.pad_top = some(0, 7);
        p.pad_left = some(0, 7);
        p.pad_bottom = some(0, 7);
        p.pad_right = some(0, 7);
        p.input_zero_point = some(-128, 127);
        p.output_zero_point = some(-128, 127);
        const std::int64_t kh = some(2, 5);
        const std::int64_t kw = some(2, 5);
        const std::int64_t c = some(0, 2) == 0 ? some(16, 70) : 16 * some(1, 5);
        const std::int64_t h = (kh - 1) * p.dilation_h + some(1, 30);
        const std::int64_t w = (kw - 1) * p.dilation_w + some(1, 30);
        return make_case(kDepthwiseConv2d, p,
                         {random_tensor(ElementType::kI8, {some(1, 2), h, w, c}, random, -128, 127),
                          testing::constant(random_tensor(ElementType::kI8, {kh, kw, c}, random, -128, 127)),
                          testing::constant(random_tensor(ElementType::kI32, {c}, random, -9000, 9000)),
                          testing::constant(random_tensor(ElementType::kI32, {c}, random, 0x40000000, 0x7fffffff)),
                          testing::constant(random_tensor(ElementType::kI32, {c}, random, -9, -4))});
      },
      {.cases = 60, .must_cover = {"i8_channels__simd"}});
}

OpCase random_large_window_case(Random& random, ElementType type) {
  const auto some = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  const testing::LargeWindow window = testing::random_large_window(random);
  Conv2dParams p{.stride_h = window.stride_h,
                 .stride_w = window.stride_w,
                 .dilation_h = window.dilation_h,
                 .dilation_w = window.dilation_w};
  p.pad_top = p.pad_left = p.pad_bottom = p.pad_right = window.pad;
  const std::int64_t c = window.channels;
  const bool integer = type == ElementType::kI8;
  std::vector<testing::Operand> inputs;
  inputs.emplace_back(
      random_tensor(type, {some(1, 2), window.h, window.w, c}, random, integer ? -128 : -1, integer ? 127 : 1));
  inputs.push_back(testing::constant(
      random_tensor(type, {window.kernel_h, window.kernel_w, c}, random, integer ? -128 : -1, integer ? 127 : 1)));
  if (integer) {
    p.input_zero_point = some(-128, 127);
    p.output_zero_point = some(-128, 127);
    inputs.push_back(testing::constant(random_tensor(ElementType::kI32, {c}, random, -9000, 9000)));
    inputs.push_back(testing::constant(random_tensor(ElementType::kI32, {c}, random, 0x40000000, 0x7fffffff)));
    inputs.push_back(testing::constant(random_tensor(ElementType::kI32, {c}, random, -11, -6)));
  }
  return make_case(kDepthwiseConv2d, p, std::move(inputs));
}

TEST(DepthwiseConv2d, VariantsMatchReferenceWithLargeWindows) {
  for (const auto& [type, kernel] :
       {std::pair(ElementType::kF32, "f32_channels__simd"), std::pair(ElementType::kI8, "i8_channels__simd")})
    testing::expect_variants_match_reference([&](Random& random) { return random_large_window_case(random, type); },
                                             {.cases = 40, .must_cover = {kernel}});
}

/// A sound: one row of so many samples that threads cut it into columns, and windows of one row; or one column, which
/// is computed as if it lay.
OpCase random_sound_case(Random& random, ElementType type) {
  const auto some = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  const bool upright = some(0, 1) != 0;
  Conv2dParams p;
  (upright ? p.stride_h : p.stride_w) = some(1, 3);
  (upright ? p.dilation_h : p.dilation_w) = some(1, 20);
  (upright ? p.pad_top : p.pad_left) = some(0, 1) * some(0, 60);
  (upright ? p.pad_bottom : p.pad_right) = some(0, 1) * some(0, 60);
  const std::int64_t c = some(40, 90);
  const std::int64_t taps = some(2, 25);
  const bool integer = type == ElementType::kI8;
  std::vector<testing::Operand> inputs;
  const std::int64_t samples = (taps - 1) * std::max(p.dilation_h, p.dilation_w) + some(50, 400);
  const std::vector<std::int64_t> x{1, upright ? samples : 1, upright ? 1 : samples, c};
  const std::vector<std::int64_t> w{upright ? taps : 1, upright ? 1 : taps, c};
  inputs.emplace_back(random_tensor(type, x, random, integer ? -128 : -1, integer ? 127 : 1));
  inputs.push_back(testing::constant(random_tensor(type, w, random, integer ? -127 : -1, integer ? 127 : 1)));
  if (integer) {
    p.input_zero_point = some(-128, 127);
    inputs.push_back(absent());
    inputs.push_back(testing::constant(random_tensor(ElementType::kI32, {c}, random, 0x40000000, 0x7fffffff)));
    inputs.push_back(testing::constant(random_tensor(ElementType::kI32, {c}, random, -9, -4)));
  }
  return make_case(kDepthwiseConv2d, p, std::move(inputs));
}

TEST(DepthwiseConv2d, VariantsMatchReferenceOnSounds) {
  for (const ElementType type : {ElementType::kF32, ElementType::kI8})
    testing::expect_variants_match_reference([&](Random& random) { return random_sound_case(random, type); },
                                             {.cases = 20});
}

}  // namespace
}  // namespace bantam::ops
