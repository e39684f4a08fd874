#include "ops/nn/pool2d/pool2d.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using ::testing::ElementsAre;
using testing::make_case;
using testing::OpCase;
using testing::Outcome;
using testing::Random;
using testing::random_int;
using testing::random_tensor;
using testing::run_reference;
using testing::tensor_of;
using testing::TestTensor;

constexpr Pool2dParams kTwo{.kernel_h = 1, .kernel_w = 2, .stride_w = 2};

Pool2dParams with(Pool2dParams p, PoolKind kind) {
  p.kind = kind;
  return p;
}

TEST(Pool2d, MaximumAndAverageOfAWindow) {
  const auto x = tensor_of<float>({1, 1, 4, 2}, {1, -1, 5, -5, 2, 0, 3, -9});
  EXPECT_THAT(run_reference(make_case(kPool2d, with(kTwo, PoolKind::kMax), {x})).outputs[0].values<float>(),
              ElementsAre(5, -1, 3, 0));
  EXPECT_THAT(run_reference(make_case(kPool2d, with(kTwo, PoolKind::kAverage), {x})).outputs[0].values<float>(),
              ElementsAre(3, -3, 2.5F, -4.5F));
}

TEST(Pool2d, AverageCountsPaddingOnlyWhenAsked) {
  Pool2dParams p{.kind = PoolKind::kAverage, .kernel_w = 3, .stride_w = 2, .pad_left = 1, .pad_right = 1};
  const auto x = tensor_of<float>({1, 1, 3, 1}, {6, 12, 18});
  EXPECT_THAT(run_reference(make_case(kPool2d, p, {x})).outputs[0].values<float>(), ElementsAre(9, 15));
  p.count_include_pad = 1;
  EXPECT_THAT(run_reference(make_case(kPool2d, p, {x})).outputs[0].values<float>(), ElementsAre(6, 10));
}

TEST(Pool2d, CeilModeAddsAPartialWindowThatIsNeverCounted) {
  Pool2dParams p{.kind = PoolKind::kAverage, .kernel_w = 2, .stride_w = 2, .ceil_mode = 1, .count_include_pad = 1};
  const auto x = tensor_of<float>({1, 1, 3, 1}, {2, 4, 7});
  EXPECT_THAT(run_reference(make_case(kPool2d, p, {x})).outputs[0].values<float>(), ElementsAre(3, 7));
  p.ceil_mode = 0;
  EXPECT_THAT(run_reference(make_case(kPool2d, p, {x})).outputs[0].values<float>(), ElementsAre(3));
}

TEST(Pool2d, CeilModeDropsAWindowThatBeginsBeyondTheImage) {
  // Positions 0 and 3; a third would begin at 6 - 1 = 5, beyond the four elements.
  const Pool2dParams p{.kernel_w = 1, .stride_w = 3, .pad_left = 1, .pad_right = 2, .ceil_mode = 1};
  const Outcome y = run_reference(make_case(kPool2d, p, {tensor_of<float>({1, 1, 3, 1}, {1, 2, 3})}));
  EXPECT_EQ(y.outputs[0].desc().dims[2], 2);
}

TEST(Pool2d, DilatedWindow) {
  const Pool2dParams p{.kernel_w = 2, .dilation_w = 2};
  EXPECT_THAT(
      run_reference(make_case(kPool2d, p, {tensor_of<float>({1, 1, 4, 1}, {4, 9, 1, 2})})).outputs[0].values<float>(),
      ElementsAre(4, 9));
}

TEST(Pool2d, IntegerAverageRoundsHalfAwayFromZero) {
  const auto p = with(kTwo, PoolKind::kAverage);
  EXPECT_THAT(run_reference(make_case(kPool2d, p, {tensor_of<std::int8_t>({1, 1, 4, 1}, {1, 2, -1, -2})}))
                  .outputs[0]
                  .values<std::int8_t>(),
              ElementsAre(2, -2));
  Pool2dParams u = p;
  u.minimum = 0;
  u.maximum = 200;
  EXPECT_THAT(run_reference(make_case(kPool2d, u, {tensor_of<std::uint8_t>({1, 1, 4, 1}, {250, 255, 3, 4})}))
                  .outputs[0]
                  .values<std::uint8_t>(),
              ElementsAre(200, 4));
  Pool2dParams w = p;
  w.minimum = -32768;
  w.maximum = 32767;
  EXPECT_THAT(
      run_reference(make_case(kPool2d, w, {tensor_of<std::int16_t>({1, 1, 4, 1}, {32767, 32766, -32768, -32767})}))
          .outputs[0]
          .values<std::int16_t>(),
      ElementsAre(32767, -32768));
}

TEST(Pool2d, WindowInsidePaddingIsLowestOrZero) {
  Pool2dParams p{.kernel_w = 1, .pad_left = 1, .activation = {UnaryFunction::kClip, -5, 5}};
  const auto x = tensor_of<float>({1, 1, 1, 1}, {2});
  EXPECT_THAT(run_reference(make_case(kPool2d, p, {x})).outputs[0].values<float>(), ElementsAre(-5, 2));
  p.kind = PoolKind::kAverage;
  EXPECT_THAT(run_reference(make_case(kPool2d, p, {x})).outputs[0].values<float>(), ElementsAre(0, 2));
}

TEST(Pool2d, HugeWindowCostsNoMoreThanTheImage) {
  const Pool2dParams p{.kind = PoolKind::kAverage,
                       .kernel_h = 0x7fffffff,
                       .kernel_w = 0x7fffffff,
                       .pad_top = 0x7ffffff0,
                       .pad_left = 0x7ffffff0,
                       .pad_bottom = 15,
                       .pad_right = 15};
  const Outcome y = run_reference(make_case(kPool2d, p, {tensor_of<float>({1, 2, 2, 1}, {1, 2, 3, 6})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_EQ(y.outputs[0].values<float>().back(), 3.0F);
}

TEST(Pool2d, RefusesBadParameters) {
  const auto ok = [](Pool2dParams p, ElementType type = ElementType::kF32) {
    std::vector<TensorDesc> outputs;
    return testing::infer_case(make_case(kPool2d, p, {TestTensor(testing::dense_desc(type, {1, 4, 4, 2}))}), &outputs)
        .ok();
  };
  EXPECT_TRUE(ok({}));
  EXPECT_FALSE(ok({.kind = static_cast<PoolKind>(2)}));
  EXPECT_FALSE(ok({.kernel_h = 0}));
  EXPECT_FALSE(ok({.kernel_w = 5}));
  EXPECT_FALSE(ok({.stride_h = 0}));
  EXPECT_FALSE(ok({.dilation_w = -1}));
  EXPECT_FALSE(ok({.pad_left = -1}));
  EXPECT_FALSE(ok({.ceil_mode = 2}));
  EXPECT_FALSE(ok({.minimum = 0, .maximum = 128}, ElementType::kI8));
  EXPECT_FALSE(ok({}, ElementType::kU8)) << "an i8 range for u8";
  EXPECT_FALSE(ok({}, ElementType::kI32));
}

OpCase random_pool2d_case(Random& random, ElementType type) {
  const auto small = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  Pool2dParams p{.kind = small(0, 1) == 0 ? PoolKind::kMax : PoolKind::kAverage,
                 .kernel_h = small(1, 4),
                 .kernel_w = small(1, 4),
                 .stride_h = small(1, 3),
                 .stride_w = small(1, 3),
                 .dilation_h = small(0, 3) == 0 ? 2 : 1,
                 .dilation_w = small(0, 3) == 0 ? 2 : 1,
                 .pad_top = small(0, 5),
                 .pad_left = small(0, 2),
                 .pad_bottom = small(0, 2),
                 .pad_right = small(0, 5),
                 .ceil_mode = small(0, 1),
                 .count_include_pad = small(0, 1)};
  if (type == ElementType::kF32) {
    p.activation = {small(0, 1) == 0 ? UnaryFunction::kIdentity : UnaryFunction::kTanh, 0, 0};
  } else {
    const std::int32_t lowest = type == ElementType::kI8 ? -128 : 0;
    p.minimum = lowest + small(0, 60);
    p.maximum = lowest + small(200, 255);
  }
  const std::int64_t h = (p.kernel_h - 1) * p.dilation_h + random_int(random, 1, 6);
  const std::int64_t w = (p.kernel_w - 1) * p.dilation_w + random_int(random, 1, 6);
  return make_case(kPool2d, p,
                   {random_tensor(type, {random_int(random, 1, 2), h, w, random_int(random, 1, 90)}, random,
                                  type == ElementType::kF32 ? -1 : -128, type == ElementType::kF32 ? 1 : 255)});
}

TEST(Pool2d, FloatVariantsMatchReference) {
  testing::expect_variants_match_reference([](Random& random) { return random_pool2d_case(random, ElementType::kF32); },
                                           {.cases = 100, .must_cover = {"any_channels__simd"}});
}

// Columns are folded first, as many as there is room for; of few channels all windows are computed, and some picked.
TEST(Pool2d, LargeWindowsWideRowsAndFewChannelsMatchReference) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kI8, ElementType::kU8};
        const ElementType type = kTypes[random() % 3];
        const auto small = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        Pool2dParams p{.kernel_h = small(2, 9), .kernel_w = small(1, 9), .stride_w = small(1, 3)};
        p.dilation_w = small(0, 4) == 0 ? 2 : 1;
        p.pad_left = small(0, 4);
        p.pad_right = small(0, 4);
        p.pad_top = small(0, 2);
        if (type == ElementType::kF32) {
          p.kind = small(0, 1) == 0 ? PoolKind::kMax : PoolKind::kAverage;
          p.count_include_pad = small(0, 1);
          if (small(0, 1) == 0) p.activation = {UnaryFunction::kClip, -0.2F, 0.3F};
        } else {
          p.minimum = type == ElementType::kI8 ? -128 : 0;
          p.maximum = p.minimum + 255;
        }
        p.ceil_mode = small(0, 1);
        struct Image {
          std::int64_t channels, width;
        };
        const Image images[] = {
            {small(1, 150), small(100, 200)}, {small(400, 3000), small(1, 12)}, {small(1, 9), small(10, 3000)}};
        const auto [channels, width] = images[random() % 3];
        const std::int64_t w = (p.kernel_w - 1) * p.dilation_w + width;
        return make_case(kPool2d, p,
                         {random_tensor(type, {1, p.kernel_h + small(0, 1), w, channels}, random,
                                        type == ElementType::kF32 ? -1 : -128, type == ElementType::kF32 ? 1 : 255)});
      },
      {.cases = 120, .must_cover = {"any_channels__simd"}});
}

// Lines hold the columns of several rows, of planes and items that follow each other, or part of a row.
TEST(Pool2d, ImagesOfOneChannelMatchReference) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kI8, ElementType::kU8};
        const ElementType type = kTypes[random() % 3];
        const auto small = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        Pool2dParams p{.kind = small(0, 1) == 0 ? PoolKind::kMax : PoolKind::kAverage,
                       .kernel_h = small(1, 4),
                       .kernel_w = small(1, 8),
                       .stride_h = small(1, 3),
                       .stride_w = small(1, 6)};
        p.dilation_h = small(1, 2);
        p.dilation_w = small(0, 3) == 0 ? 3 : 1;
        if (small(0, 9) == 0) p.stride_w = small(500, 1500);
        p.pad_left = small(0, 9);
        p.pad_right = small(0, 9) == 0 ? small(2000, 3000) : small(0, 9);
        p.pad_top = small(0, 5);
        p.pad_bottom = small(0, 5);
        p.ceil_mode = small(0, 1);
        p.count_include_pad = small(0, 1);
        if (type == ElementType::kF32) {
          constexpr Activation kActivations[] = {{}, {UnaryFunction::kClip, -0.2F, 0.3F}, {UnaryFunction::kTanh}};
          p.activation = kActivations[random() % 3];
        } else {
          p.minimum = (type == ElementType::kI8 ? -128 : 0) + small(0, 60);
          p.maximum = p.minimum + 190;
        }
        const std::int64_t width =
            (p.kernel_w - 1) * p.dilation_w + (small(0, 4) == 0 ? small(1000, 5000) : small(1, 200));
        const std::int64_t height = (p.kernel_h - 1) * p.dilation_h + small(1, 12);
        return make_case(kPool2d, p,
                         {random_tensor(type, {small(1, 4), height, width, 1}, random,
                                        type == ElementType::kF32 ? -1 : -128, type == ElementType::kF32 ? 1 : 255)});
      },
      {.cases = 150, .must_cover = {"any_planes__simd", "any_channels__simd"}});
}

TEST(Pool2d, MaximaOfOneChannelSkipNaNs) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const auto x = tensor_of<float>({1, 2, 4, 1}, {kNaN, 1, kNaN, kNaN, 2, kNaN, kNaN, kNaN});
  const Pool2dParams p{.kernel_h = 2, .kernel_w = 2};
  for (const KernelVariant& kernel : kPool2d.variants) {
    const Outcome y = testing::run_variant(make_case(kPool2d, p, {x}), kernel);
    EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(2, 1, -std::numeric_limits<float>::infinity()))
        << kernel.name;
  }
}

TEST(Pool2d, IntegerVariantsMatchReferenceExactly) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        return random_pool2d_case(random, random_int(random, 0, 1) == 0 ? ElementType::kI8 : ElementType::kU8);
      },
      {.cases = 150, .must_cover = {"any_channels__simd"}});
}

}  // namespace
}  // namespace bantam::ops
