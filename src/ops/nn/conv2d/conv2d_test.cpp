#include "ops/nn/conv2d/conv2d.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "ops/nn/conv2d/gemm_pixels.h"
#include "ops/nn/conv2d/problem.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using testing::absent;
using testing::constant;
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

Status infer_status(const Conv2dParams& params, std::vector<std::int64_t> x, std::vector<std::int64_t> w,
                    ElementType type = ElementType::kF32) {
  std::vector<TensorDesc> outputs;
  return testing::infer_case(
      make_case(kConv2d, params, {TestTensor(testing::dense_desc(type, x)), TestTensor(testing::dense_desc(type, w))}),
      &outputs);
}

TEST(Conv2d, SumsTapsInsideThePaddedImage) {
  // 3x3 image 1..9, 2x2 kernel {1,2;3,4}, padding 1 before only, stride 2.
  const Outcome y =
      run_reference(make_case(kConv2d, Conv2dParams{.stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_left = 1},
                              {tensor_of<float>({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}),
                               tensor_of<float>({1, 2, 2, 1}, {1, 2, 3, 4}), tensor_of<float>({1}, {0.5F})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<float>(),
              ElementsAre(4.5F, 2 * 3 + 3 * 4 + 0.5F, 4 * 2 + 7 * 4 + 0.5F, 5 * 1 + 6 * 2 + 8 * 3 + 9 * 4 + 0.5F));
}

TEST(Conv2d, DilationSkipsPixels) {
  const Outcome y = run_reference(
      make_case(kConv2d, Conv2dParams{.dilation_w = 2},
                {tensor_of<float>({1, 1, 4, 1}, {1, 10, 100, 1000}), tensor_of<float>({1, 1, 2, 1}, {1, 2})}));
  EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(201, 2010));
}

TEST(Conv2d, GroupsSeeTheirOwnChannels) {
  // Two groups of two input channels and one output channel each.
  const Outcome y = run_reference(
      make_case(kConv2d, Conv2dParams{.groups = 2},
                {tensor_of<float>({1, 1, 1, 4}, {1, 2, 3, 4}), tensor_of<float>({2, 1, 1, 2}, {1, 10, 100, 1000})}));
  EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(21, 4300));
}

TEST(Conv2d, ActivationComesAfterBias) {
  const Outcome y = run_reference(make_case(
      kConv2d, Conv2dParams{.activation = {UnaryFunction::kClip, 0.0F, 6.0F}},
      {tensor_of<float>({1, 1, 3, 1}, {-4, 1, 9}), tensor_of<float>({1, 1, 1, 1}, {1}), tensor_of<float>({1}, {2})}));
  EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(0, 3, 6));
}

TEST(Conv2d, Int8RequantisesPerChannel) {
  // Channel 0: acc = (10+1)*2 + (20+1)*-3 + 100 = 59; times 0.5 = 29.5 -> 30; plus 5.
  // Channel 1: acc = 11*1 + 21*1 - 7 = 25; times 2 = 50; plus 5, limited to 50.
  const Outcome y = run_reference(
      make_case(kConv2d, Conv2dParams{.input_zero_point = -1, .output_zero_point = 5, .minimum = -20, .maximum = 50},
                {tensor_of<std::int8_t>({1, 1, 1, 2}, {10, 20}), tensor_of<std::int8_t>({2, 1, 1, 2}, {2, -3, 1, 1}),
                 tensor_of<std::int32_t>({2}, {100, -7}), tensor_of<std::int32_t>({2}, {1 << 30, 1 << 30}),
                 tensor_of<std::int32_t>({2}, {0, 2})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<std::int8_t>(), ElementsAre(35, 50));
}

TEST(Conv2d, Int8PaddingCountsAsZeroPoint) {
  // Only the tap inside contributes: (3 - 3) * 1 = 0 plus padding's nothing.
  const Outcome y =
      run_reference(make_case(kConv2d, Conv2dParams{.pad_left = 1, .input_zero_point = 3},
                              {tensor_of<std::int8_t>({1, 1, 1, 1}, {4}), tensor_of<std::int8_t>({1, 1, 2, 1}, {50, 7}),
                               absent(), tensor_of<std::int32_t>({1}, {1 << 30}), tensor_of<std::int32_t>({1}, {1})}));
  EXPECT_THAT(y.outputs[0].values<std::int8_t>(), ElementsAre(7));
}

TEST(Conv2d, HybridQuantisesEachItemByItsLargestMagnitude) {
  // Item 0: scale 1.27 / 127 = 0.01, q = 127, 50; item 1: scale 0.02, q = -127, 13 (0.25 / 0.02 = 12.5 away from zero).
  const Outcome y = run_reference(make_case(
      kConv2d, Conv2dParams{},
      {tensor_of<float>({2, 1, 1, 2}, {1.27F, 0.5F, -2.54F, 0.25F}), tensor_of<std::int8_t>({1, 1, 1, 2}, {2, 3}),
       tensor_of<float>({1}, {1.0F}), tensor_of<float>({1}, {0.5F})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<float>(), Pointwise(FloatNear(1e-5F), {404 * 0.005F + 1, (-254 + 39) * 0.01F + 1}));
}

TEST(Conv2d, HybridOfZerosAndOfInfinitiesIsDefined) {
  const float inf = std::numeric_limits<float>::infinity();
  const Outcome y =
      run_reference(make_case(kConv2d, Conv2dParams{},
                              {tensor_of<float>({2, 1, 1, 1}, {0, inf}), tensor_of<std::int8_t>({1, 1, 1, 1}, {1}),
                               absent(), tensor_of<float>({1}, {1})}));
  EXPECT_EQ(y.outputs[0].values<float>()[0], 0.0F);
}

TEST(Conv2d, EmptyBatchGivesEmptyResult) {
  std::vector<TensorDesc> outputs;
  const OpCase c =
      make_case(kConv2d, Conv2dParams{},
                {tensor_of<float>({0, 3, 3, 1}, {}), tensor_of<float>({2, 2, 2, 1}, std::vector<float>(8))});
  ASSERT_TRUE(testing::infer_case(c, &outputs).ok());
  EXPECT_EQ(outputs[0].elements(), 0);
  EXPECT_EQ(outputs[0].dims[3], 2);
}

// What a package says of shapes is asked about before anything is known of it, for every step.
TEST(Conv2d, ScratchOfTheWidestImagesIsFoundWithoutTryingWidths) {
  const Conv2dParams p{.pad_top = 100, .pad_bottom = 100};
  const TensorDesc x = testing::dense_desc(ElementType::kF32, {1, 1, 1 << 29, 1});
  const TensorDesc w = testing::dense_desc(ElementType::kF32, {1, 200, 3, 1});
  const Tensor inputs[] = {{nullptr, &x}, {nullptr, &w}};
  TensorDesc y;
  ASSERT_TRUE(infer(kConv2d, &p, inputs, {&y, 1}).ok());
  ASSERT_EQ(y.dims[1], 2);
  const Tensor outputs[] = {{nullptr, &y}};
  const OpCall call{&p, inputs, outputs};
  for (int step = 0; step < 1000; ++step) {
    const Footprint needed = footprint(*find_variant(kConv2d, "f32_gemm__simd"), call, 1);
    ASSERT_GE(needed.useful_scratch_bytes, needed.scratch_bytes);
    ASSERT_LT(needed.useful_scratch_bytes, 1 << 20);
  }
}

TEST(Conv2d, TransformedTilesOfFewChannelsNeedMoreMemoryWhereItIsASmallShare) {
  const auto tiles = [](std::int64_t size, std::int64_t channels) {
    const Conv2dParams p{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
    const TensorDesc x = testing::dense_desc(ElementType::kF32, {1, size, size, channels});
    const TensorDesc w = testing::dense_desc(ElementType::kF32, {channels, 3, 3, channels});
    const Tensor inputs[] = {{nullptr, &x}, {nullptr, &w}};
    const Tensor outputs[] = {{nullptr, &x}};
    const Footprint needs = footprint(*find_variant(kConv2d, "f32_winograd__simd"), {&p, inputs, outputs}, 1);
    EXPECT_GE(needs.useful_scratch_bytes, needs.scratch_bytes);
    // A tile has six rows and columns of each channel of x, and as many of y.
    return needs.scratch_bytes / (36 * 2 * channels * static_cast<std::int64_t>(sizeof(float)));
  };
  EXPECT_EQ(tiles(192, 16), 18);
  EXPECT_EQ(tiles(192, 32), 12);
  EXPECT_EQ(tiles(192, 64), 6);
  EXPECT_EQ(tiles(96, 16), 8) << "a share of 1 in 32";
  EXPECT_EQ(tiles(32, 16), 6) << "the least of all";
}

TEST(Conv2d, RefusesWhatDoesNotFit) {
  const auto bad = [](Conv2dParams p) { return !infer_status(p, {1, 4, 4, 2}, {2, 3, 3, 2}).ok(); };
  EXPECT_FALSE(bad({}));
  EXPECT_TRUE(bad({.stride_h = 0}));
  EXPECT_TRUE(bad({.stride_w = -1}));
  EXPECT_TRUE(bad({.dilation_h = 0}));
  EXPECT_TRUE(bad({.dilation_w = 0x7fffffff}));
  EXPECT_TRUE(bad({.pad_top = -1}));
  EXPECT_TRUE(bad({.pad_right = -5}));
  EXPECT_TRUE(bad({.pad_top = 0x7fffffff, .pad_bottom = 0x7fffffff}));
  EXPECT_TRUE(bad({.groups = 0}));
  EXPECT_TRUE(bad({.groups = 2}));
  EXPECT_TRUE(bad({.activation = {UnaryFunction::kSin, 0, 0}}));
  EXPECT_TRUE(bad({.activation = {static_cast<UnaryFunction>(-3), 0, 0}}));
  EXPECT_FALSE(infer_status({}, {1, 2, 4, 2}, {2, 3, 3, 2}).ok()) << "kernel larger than image";
  EXPECT_FALSE(infer_status({}, {1, 4, 4, 2}, {2, 0, 3, 2}).ok()) << "kernel without elements";
  EXPECT_FALSE(infer_status({}, {4, 4, 2}, {2, 3, 3, 2}).ok()) << "rank";
  EXPECT_FALSE(infer_status({}, {1, 4, 4, 2}, {2, 3, 3, 2}, ElementType::kI8).ok()) << "int8 without scales";
  EXPECT_FALSE(infer_status({}, {1, 4, 4, 2}, {2, 3, 3, 2}, ElementType::kI32).ok()) << "type";
}

TEST(Conv2d, RefusesBadInt8Range) {
  const auto ok = [](Conv2dParams p) {
    std::vector<TensorDesc> outputs;
    return testing::infer_case(
               make_case(kConv2d, p,
                         {tensor_of<std::int8_t>({1, 1, 1, 1}, {4}), tensor_of<std::int8_t>({1, 1, 1, 1}, {1}),
                          absent(), tensor_of<std::int32_t>({1}, {1}), tensor_of<std::int32_t>({1}, {1})}),
               &outputs)
        .ok();
  };
  EXPECT_TRUE(ok({}));
  EXPECT_FALSE(ok({.input_zero_point = 128}));
  EXPECT_FALSE(ok({.output_zero_point = -129}));
  EXPECT_FALSE(ok({.minimum = 5, .maximum = 4}));
  EXPECT_FALSE(ok({.maximum = 0x7fffffff}));
}

/// A random convolution that infer accepts; sizes around the kernels' tiles and vectors.
OpCase random_float_conv2d_case(Random& random) {
  Conv2dParams p;
  p.groups = static_cast<std::int32_t>(random_int(random, 0, 3) == 0 ? random_int(random, 2, 3) : 1);
  const std::int64_t kh = random_int(random, 1, 4);
  const std::int64_t kw = random_int(random, 1, 4);
  const auto small = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  p.stride_h = small(1, 3);
  p.stride_w = small(1, 3);
  p.dilation_h = small(0, 2) == 0 ? small(2, 3) : 1;
  p.dilation_w = small(0, 2) == 0 ? small(2, 3) : 1;
  if (small(0, 3) != 0) {
    p.pad_top = small(0, 3);
    p.pad_left = small(0, 3);
    p.pad_bottom = small(0, 3);
    p.pad_right = small(0, 3);
  }
  constexpr UnaryFunction kFunctions[] = {UnaryFunction::kIdentity, UnaryFunction::kRelu, UnaryFunction::kClip,
                                          UnaryFunction::kSigmoid, UnaryFunction::kHardSwish};
  p.activation = {kFunctions[random_int(random, 0, 4)], -0.5F, 0.75F};
  const std::int64_t c = p.groups * random_int(random, 1, random_int(random, 0, 2) == 0 ? 40 : 5);
  const std::int64_t oc = p.groups * random_int(random, 1, random_int(random, 0, 1) == 0 ? 70 : 9);
  const std::int64_t h = (kh - 1) * p.dilation_h + random_int(random, 1, 8);
  std::int64_t w = (kw - 1) * p.dilation_w + random_int(random, 1, random_int(random, 0, 2) == 0 ? 60 : 12);
  if (small(0, 15) == 0) {  // nothing but padding
    p.pad_left = static_cast<std::int32_t>(w);
    w = 0;
  }
  const std::int64_t n = random_int(random, 1, 2);
  std::vector<testing::Operand> inputs;
  inputs.emplace_back(random_tensor(ElementType::kF32, {n, h, w, c}, random));
  inputs.push_back(constant(random_tensor(ElementType::kF32, {oc, kh, kw, c / p.groups}, random)));
  if (random_int(random, 0, 3) != 0) inputs.push_back(constant(random_tensor(ElementType::kF32, {oc}, random)));
  return make_case(kConv2d, p, std::move(inputs));
}

TEST(Conv2d, FloatVariantsMatchReference) {
  testing::expect_variants_match_reference(
      random_float_conv2d_case, {.cases = 150,
                                 .must_cover = {"f32_gemm__simd", "f32_gemm_f16__simd", "f32_gemm_bf16__simd",
                                                "f32_gemm_i8__simd", "f32_gemm_i4__simd"}});
  testing::expect_packing_variants_match_reference(random_float_conv2d_case, "f32_gemm", 60);
}

/// Of a group: few, which share vectors with those of other groups, or more, in whole vectors and not.
std::int64_t random_group_outputs(Random& random) {
  constexpr std::int64_t kMany[] = {12, 16, 20, 24, 32, 48, 64};
  return random_int(random, 0, 2) == 0 ? kMany[random_int(random, 0, 6)] : random_int(random, 1, 8);
}

// Groups of fewer outputs than a vector has lanes, of more, and of inputs that one load finds or does not; images wider
// than what is spread at once.
TEST(Conv2d, NarrowGroupsMatchReference) {
  testing::expect_packing_variants_match_reference(
      [](Random& random) {
        Conv2dParams p;
        p.groups = static_cast<std::int32_t>(random_int(random, 2, 9));
        p.stride_h = static_cast<std::int32_t>(random_int(random, 1, 2));
        p.stride_w = static_cast<std::int32_t>(random_int(random, 1, 3));
        p.dilation_h = static_cast<std::int32_t>(random_int(random, 1, 2));
        p.dilation_w = static_cast<std::int32_t>(random_int(random, 1, 2));
        p.pad_top = static_cast<std::int32_t>(random_int(random, 0, 4));
        p.pad_left = static_cast<std::int32_t>(random_int(random, 0, 4));
        p.pad_right = static_cast<std::int32_t>(random_int(random, 0, 4));
        const std::int64_t inputs = random_int(random, 1, random_int(random, 0, 3) == 0 ? 20 : 5);
        const std::int64_t out = p.groups * random_group_outputs(random);
        const std::int64_t width = random_int(random, 9, random_int(random, 0, 3) == 0 ? 300 : 30);
        return make_case(
            kConv2d, p,
            {random_tensor(ElementType::kF32,
                           {random_int(random, 1, 2), random_int(random, 5, 9), width, p.groups * inputs}, random),
             constant(random_tensor(ElementType::kF32,
                                    {out, random_int(random, 1, 3), random_int(random, 1, 5), inputs}, random)),
             constant(random_tensor(ElementType::kF32, {out}, random))});
      },
      "f32_narrow_groups", 120);
}

// One channel to more than fit; kernels of fewer columns than are multiplied together, and of more; rows of many tiles
// and of none.
TEST(Conv2d, FewInputsMatchReference) {
  testing::expect_packing_variants_match_reference(
      [](Random& random) {
        const auto small = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        constexpr UnaryFunction kFunctions[] = {UnaryFunction::kIdentity, UnaryFunction::kRelu, UnaryFunction::kSilu};
        Conv2dParams p{.stride_h = small(1, 3), .stride_w = small(1, 2)};
        p.pad_top = small(0, 5);
        p.pad_left = small(0, 5);
        p.pad_right = small(0, 5);
        p.activation = {kFunctions[small(0, 2)], 0, 0};
        const std::int64_t inputs = small(1, 5);
        const std::int64_t outputs = small(1, small(0, 3) == 0 ? 300 : 68);
        const std::int64_t width = small(12, small(0, 5) == 0 ? 250 : 50);
        return make_case(
            kConv2d, p,
            {random_tensor(ElementType::kF32, {small(1, 2), small(5, 12), width, inputs}, random),
             constant(random_tensor(ElementType::kF32, {outputs, small(1, 5), small(1, 8), inputs}, random)),
             small(0, 1) == 0 ? absent() : constant(random_tensor(ElementType::kF32, {outputs}, random))});
      },
      "f32_few_inputs", 60);
}

OpCase random_few_outputs_case(Random& random, ElementType type) {
  const auto small = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  Conv2dParams p;
  p.stride_h = small(1, 2);
  p.stride_w = small(1, 3);
  p.dilation_h = small(1, 2);
  p.dilation_w = small(1, 2);
  p.pad_top = small(0, 4);
  p.pad_left = small(0, 4);
  p.pad_right = small(0, 4);
  // Runs of taps may have any length.
  const bool is_wide = small(0, 1) == 0;
  if (is_wide) p.dilation_w = 1;
  const std::int64_t inputs = is_wide ? small(1, 9) : small(16, 90);
  const std::int64_t oc = small(1, 8);
  const std::vector<std::int64_t> x{small(1, 2), small(5, 9), small(5, 40) + (is_wide ? 40 : 0), inputs};
  const std::vector<std::int64_t> w{oc, small(1, 3), is_wide ? small(8, 40) : small(1, 3), inputs};
  if (type == ElementType::kF32) {
    p.activation = {small(0, 1) == 0 ? UnaryFunction::kSigmoid : UnaryFunction::kIdentity};
    return make_case(kConv2d, p,
                     {random_tensor(type, x, random), constant(random_tensor(type, w, random)),
                      small(0, 1) == 0 ? absent() : constant(random_tensor(type, {oc}, random))});
  }
  p.input_zero_point = small(-128, 127);
  return make_case(kConv2d, p,
                   {random_tensor(type, x, random, -128, 127), constant(random_tensor(type, w, random, -128, 127)),
                    constant(random_tensor(ElementType::kI32, {oc}, random, -20000, 20000)),
                    constant(random_tensor(ElementType::kI32, {oc}, random, 0x40000000, 0x7fffffff)),
                    constant(random_tensor(ElementType::kI32, {oc}, random, -14, -6))});
}

TEST(Conv2d, FewOutputsMatchReference) {
  for (const auto& [type, variant] :
       {std::pair{ElementType::kF32, "f32_few_outputs__simd"}, std::pair{ElementType::kI8, "i8_few_outputs__simd"}})
    testing::expect_variants_match_reference(
        [type = type](Random& random) { return random_few_outputs_case(random, type); },
        {.cases = 60, .must_cover = {variant}});
}

TEST(Conv2d, PointwiseVariantsMatchReference) {
  testing::expect_packing_variants_match_reference(
      [](Random& random) {
        Conv2dParams p;
        p.stride_w = p.stride_h = static_cast<std::int32_t>(random_int(random, 1, 2));
        const std::int64_t c = random_int(random, 1, 70);
        return make_case(
            kConv2d, p,
            {random_tensor(ElementType::kF32,
                           {random_int(random, 1, 2), random_int(random, 1, 9), random_int(random, 1, 30), c}, random),
             constant(random_tensor(ElementType::kF32, {random_int(random, 1, 100), 1, 1, c}, random))});
      },
      "f32_gemm", 60);
}

// So many pixels that a result which overlaps its operand is computed several tiles at a time.
TEST(Conv2d, ManyPixelsMatchReference) {
  testing::expect_packing_variants_match_reference(
      [](Random& random) {
        const std::int64_t c = random_int(random, 20, 24);
        return make_case(kConv2d, Conv2dParams{},
                         {random_tensor(ElementType::kF32, {1, 64, random_int(random, 49, 52), c}, random),
                          constant(random_tensor(ElementType::kF32, {c + 16, 1, 1, c}, random))});
      },
      "f32_gemm", 2);
}

// So many weights that windows are gathered many at a time.
TEST(Conv2d, ManyWeightsMatchReference) {
  testing::expect_packing_variants_match_reference(
      [](Random& random) {
        constexpr UnaryFunction kFunctions[] = {UnaryFunction::kIdentity, UnaryFunction::kRelu, UnaryFunction::kSilu};
        const auto step = static_cast<std::int32_t>(random_int(random, 1, 2));
        Conv2dParams p{.stride_h = step, .stride_w = step, .dilation_h = 3 - step, .dilation_w = 3 - step};
        p.pad_top = p.pad_left = static_cast<std::int32_t>(random_int(random, 0, 2));
        p.activation = {kFunctions[random_int(random, 0, 2)], 0, 0};
        const std::int64_t side = random_int(random, 7, 12);
        // So many inputs that those of a tap are multiplied in parts.
        const bool deep = random_int(random, 0, 1) != 0;
        const std::int64_t inputs = deep ? 1100 : 96;
        return make_case(
            kConv2d, p,
            {random_tensor(ElementType::kF32, {random_int(random, 1, 2), deep ? 7 : side, side - 2, inputs}, random),
             constant(random_tensor(ElementType::kF32, {deep ? 16 : 80, 3, 3, inputs}, random))});
      },
      "f32_gemm", 10);
}

#if BANTAM_SIMD
// What grows scratch may leave less than a window needs, and threads fewer pixels than a tile has rows.
TEST(Conv2d, FewPixelsOfWhichNoWindowHasRoomAreGatheredInPieces) {
  constexpr std::int64_t kPixels = 2;
  constexpr std::int64_t kOutputs = 16;
  constexpr std::int64_t kRoom = 1000;  // of floats, for windows of 9900
  Random random(1);
  const Conv2dParams params{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  const TestTensor x = random_tensor(ElementType::kF32, {1, 3, 2, 1100}, random);
  const TestTensor w = random_tensor(ElementType::kF32, {kOutputs, 3, 3, 1100}, random);
  const Outcome expected = run_reference(make_case(kConv2d, params, {x, constant(w)}));
  ASSERT_TRUE(expected.status.ok());
  const conv2d::Problem p = conv2d::make_problem(params, x.desc(), w.desc(), expected.outputs[0].desc());
  std::vector<float> packed(static_cast<std::size_t>(gemm::packed_floats(p.k, kOutputs)));
  gemm::pack_panels(w.values<float>().data(), p.k, kOutputs, 1, p.k, 0, 1, packed.data());
  std::vector<float> room(kRoom);
  std::vector<float> y(kPixels * kOutputs);
  conv2d::convolve_gemm(p, x.values<float>().data(), {packed.data(), kOutputs, 0, 1}, {.data = y.data()}, 0, kPixels,
                        room.data(), kRoom);
  const std::vector<float> all = expected.outputs[0].values<float>();
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], all[i], 1e-3) << i;
}
#endif

// More columns and inputs than are multiplied at once, and one row, which threads cut into columns.
TEST(Conv2d, ManyWeightsOfSoundsMatchReference) {
  testing::expect_packing_variants_match_reference(
      [](Random& random) {
        const auto small = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        const Conv2dParams p{
            .stride_w = small(1, 2), .dilation_w = small(1, 5), .pad_left = small(0, 9), .pad_right = small(0, 9)};
        const std::int64_t inputs = small(0, 1) == 0 ? 40 : 300;
        return make_case(kConv2d, p,
                         {random_tensor(ElementType::kF32, {1, 1, small(20, 60), inputs}, random),
                          constant(random_tensor(ElementType::kF32, {inputs == 40 ? 600 : 90, 1, 3, inputs}, random)),
                          constant(random_tensor(ElementType::kF32, {inputs == 40 ? 600 : 90}, random))});
      },
      "f32_gemm", 8);
}

// Windows wider than the image, of which each result has other taps inside; few weights and many.
TEST(Conv2d, TapsFarOutsideMatchReference) {
  testing::expect_packing_variants_match_reference(
      [](Random& random) {
        const auto small = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        Conv2dParams p{.stride_h = small(1, 2), .stride_w = small(1, 2), .dilation_h = small(1, 12)};
        p.dilation_w = small(0, 1) == 0 ? p.dilation_h : 1;
        p.pad_top = p.pad_bottom = small(p.dilation_h, p.dilation_h + 1);
        p.pad_left = p.pad_right = small(p.dilation_w, p.dilation_w + 1);
        p.groups = small(1, 2);
        p.activation = {small(0, 1) == 0 ? UnaryFunction::kRelu : UnaryFunction::kSilu, 0, 0};
        const std::int64_t inputs = small(32, 70);
        const std::int64_t outputs = small(0, 1) == 0 ? small(1, 40) : 240;
        return make_case(
            kConv2d, p,
            {random_tensor(ElementType::kF32, {small(1, 2), small(3, 14), small(3, 16), p.groups * inputs}, random),
             constant(random_tensor(ElementType::kF32, {p.groups * outputs, 3, 3, inputs}, random)),
             constant(random_tensor(ElementType::kF32, {p.groups * outputs}, random))});
      },
      "f32_gemm", 40);
}

TEST(Conv2d, TransformedTilesMatchReference) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const auto small = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        constexpr UnaryFunction kFunctions[] = {UnaryFunction::kIdentity, UnaryFunction::kRelu, UnaryFunction::kSilu};
        Conv2dParams p{.pad_top = small(0, 2), .pad_left = small(0, 2), .pad_bottom = small(0, 2), .pad_right = 1};
        p.activation = {kFunctions[small(0, 2)], 0, 0};
        // Dilated ones are several images, of which the last may have fewer rows or none.
        const int kind = small(0, 2);
        if (kind == 0) p.dilation_h = small(1, 4);
        if (kind == 0) p.dilation_w = small(1, 6);
        if (kind == 1) p.stride_h = p.stride_w = 2;
        // Large ones have tiles enough for every thread to have blocks of its own.
        const bool large = small(0, 3) == 0;
        const std::int64_t c = 16 * (large ? 1 : small(0, 9) == 0 ? 128 : small(1, 3));
        const std::int64_t oc = 16 * (large ? 1 : small(1, 3));
        const std::int64_t height = large ? 53 * p.stride_h : small(11, 14);
        std::vector<testing::Operand> inputs;
        inputs.emplace_back(
            random_tensor(ElementType::kF32, {small(1, 2), height, small(14, 17) + height - 11, c}, random));
        inputs.push_back(constant(random_tensor(ElementType::kF32, {oc, 3, 3, c}, random)));
        if (small(0, 1) != 0) inputs.push_back(constant(random_tensor(ElementType::kF32, {oc}, random)));
        return make_case(kConv2d, p, std::move(inputs));
      },
      {.cases = 32, .must_cover = {"f32_winograd__simd", "f32_winograd_2x2__simd"}});
}

/// The float case with int8 operands instead. Scales reach from tiny to beyond 1, and a few are extreme.
OpCase random_int8_conv2d_case(Random& random) {
  OpCase c = random_float_conv2d_case(random);
  auto* p = reinterpret_cast<Conv2dParams*>(c.params.data());
  p->input_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
  p->output_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
  p->minimum = static_cast<std::int32_t>(random_int(random, -128, 0));
  p->maximum = static_cast<std::int32_t>(random_int(random, 0, 127));
  const auto dims = [&](std::size_t i) {
    const TensorDesc& desc = c.inputs[i].tensor.desc();
    return std::vector<std::int64_t>(desc.dims, desc.dims + desc.rank);
  };
  const std::int64_t oc = dims(1)[0];
  const bool has_bias = c.inputs.size() > 2;
  const bool extreme = random_int(random, 0, 4) == 0;
  std::vector<testing::Operand> inputs;
  inputs.emplace_back(random_int(random, 0, 1) == 0
                          ? random_tensor(ElementType::kI8, dims(0), random, -128, 127)
                          : testing::random_activations(ElementType::kI8, dims(0), random, p->input_zero_point));
  inputs.push_back(constant(random_tensor(ElementType::kI8, dims(1), random, -128, 127)));
  inputs.push_back(has_bias ? constant(random_tensor(ElementType::kI32, {oc}, random, -20000, 20000)) : absent());
  inputs.push_back(
      constant(random_tensor(ElementType::kI32, {oc}, random, extreme ? -2147483648.0 : 0x40000000, 0x7fffffff)));
  inputs.push_back(constant(random_tensor(ElementType::kI32, {oc}, random, extreme ? -40 : -12, extreme ? 40 : 2)));
  c.inputs = std::move(inputs);
  return c;
}

OpCase random_int16_conv2d_case(Random& random) {
  OpCase c = random_int8_conv2d_case(random);
  auto* p = reinterpret_cast<Conv2dParams*>(c.params.data());
  p->input_zero_point = p->output_zero_point = 0;
  p->minimum = static_cast<std::int32_t>(random_int(random, -32768, 0));
  p->maximum = static_cast<std::int32_t>(random_int(random, 0, 32767));
  const TensorDesc x = c.inputs[0].tensor.desc();
  const std::int64_t oc = c.inputs[1].tensor.desc().dims[0];
  c.inputs[0] = random_tensor(ElementType::kI16, std::vector<std::int64_t>(x.dims, x.dims + 4), random, -32768, 32767);
  constexpr ElementType kBiases[] = {ElementType::kNone, ElementType::kI32, ElementType::kI64};
  const ElementType bias = kBiases[random_int(random, 0, 2)];
  c.inputs[2] = bias == ElementType::kNone ? absent() : constant(random_tensor(bias, {oc}, random, -2e9, 2e9));
  return c;
}

OpCase random_hybrid_case(Random& random) {
  OpCase c = random_float_conv2d_case(random);
  const TensorDesc w = c.inputs[1].tensor.desc();
  const bool has_bias = c.inputs.size() > 2;
  c.inputs[1] =
      constant(random_tensor(ElementType::kI8, std::vector<std::int64_t>(w.dims, w.dims + 4), random, -127, 127));
  if (!has_bias) c.inputs.push_back(absent());
  c.inputs.push_back(
      constant(random_tensor(ElementType::kF32, {random_int(random, 0, 1) == 0 ? 1 : w.dims[0]}, random, 0.001, 0.1)));
  return c;
}

TEST(Conv2d, Int8VariantsMatchReferenceExactly) {
  testing::expect_variants_match_reference(random_int8_conv2d_case, {.cases = 100, .must_cover = {"i8_gemm__simd"}});
}

TEST(Conv2d, TransformedTilesOfIntegersMatchReferenceExactly) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const auto small = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        Conv2dParams p{.pad_top = small(0, 2), .pad_left = small(0, 2), .pad_bottom = small(0, 2), .pad_right = 1};
        p.input_zero_point = small(-128, 127);
        p.output_zero_point = small(-128, 127);
        const bool dilated = small(0, 1) == 0;
        if (dilated) p.dilation_h = small(1, 4);
        if (dilated) p.dilation_w = small(1, 6);
        const bool large = small(0, 3) == 0;  // with tiles enough for every thread to have blocks of its own
        const std::int64_t c = 16 * (large ? 1 : small(1, 4));
        const std::int64_t oc = 16 * (large ? 1 : small(1, 4));
        const std::int64_t height = large ? 53 : small(dilated ? 9 : 3, 14);
        return make_case(
            kConv2d, p,
            {random_tensor(ElementType::kI8, {small(1, 2), height, small(4, 17) + height, c}, random, -128, 127),
             constant(random_tensor(ElementType::kI8, {oc, 3, 3, c}, random, -128, 127)),
             constant(random_tensor(ElementType::kI32, {oc}, random, -20000, 20000)),
             constant(random_tensor(ElementType::kI32, {oc}, random, 0x40000000, 0x7fffffff)),
             constant(random_tensor(ElementType::kI32, {oc}, random, -14, -9))});
      },
      {.cases = 24, .must_cover = {"i8_winograd__simd"}});
}

// Groups of one input and of several, odd ones too, of less than a block of outputs and of several blocks; in 16
// channels of the image and in more.
TEST(Conv2d, NarrowGroupsOfIntegersMatchReferenceExactly) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        const auto small = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        Conv2dParams p;
        p.groups = small(2, 9);
        p.stride_h = small(1, 2);
        p.stride_w = small(1, 3);
        p.dilation_w = small(1, 2);
        p.pad_top = small(0, 4);
        p.pad_left = small(0, 4);
        p.pad_right = small(0, 4);
        p.input_zero_point = small(-128, 127);
        const std::int64_t inputs = small(1, small(0, 1) == 0 ? 20 : 4);
        const std::int64_t oc = p.groups * random_group_outputs(random);
        const std::int64_t width = small(9, small(0, 3) == 0 ? 300 : 30);
        return make_case(
            kConv2d, p,
            {random_tensor(ElementType::kI8, {small(1, 2), small(5, 9), width, p.groups * inputs}, random, -128, 127),
             constant(random_tensor(ElementType::kI8, {oc, small(1, 3), small(1, 5), inputs}, random, -128, 127)),
             constant(random_tensor(ElementType::kI32, {oc}, random, -20000, 20000)),
             constant(random_tensor(ElementType::kI32, {oc}, random, 0x40000000, 0x7fffffff)),
             constant(random_tensor(ElementType::kI32, {oc}, random, -14, -6))});
      },
      {.cases = 120, .must_cover = {"i8_narrow_groups__simd"}});
}

// The largest sums that there are: beyond 2^25 with more than 112 channels.
TEST(Conv2d, LargestSumsOfTransformedTilesAreExact) {
  const KernelVariant* variant = find_variant(kConv2d, "i8_winograd__simd");
  ASSERT_NE(variant, nullptr);
  for (const auto& [channels, side] : {std::pair{112, 9}, {128, 9}, {320, 7}, {320, 4}}) {
    for (const int weight : {-128, 127}) {
      for (const int zero_point : {-128, 127}) {
        Conv2dParams p{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
        p.input_zero_point = zero_point;
        const int number = zero_point < 0 ? 127 : -128;
        Random random(7);
        const OpCase c =
            make_case(kConv2d, p,
                      {random_tensor(ElementType::kI8, {1, side, side, channels}, random, number, number),
                       constant(random_tensor(ElementType::kI8, {16, 3, 3, channels}, random, weight, weight)),
                       absent(), constant(random_tensor(ElementType::kI32, {16}, random, 0x7fffffff, 0x7fffffff)),
                       constant(random_tensor(ElementType::kI32, {16}, random, -20, -20))});
        EXPECT_EQ(
            testing::compare(testing::run_variant(c, *variant).outputs[0], testing::run_reference(c).outputs[0], {}),
            "")
            << channels << " channels, weights " << weight << ", zero point " << zero_point;
      }
    }
  }
}

TEST(Conv2d, Int16VariantsMatchReferenceExactly) {
  testing::expect_variants_match_reference(random_int16_conv2d_case, {.cases = 80, .must_cover = {"i8_gemm__simd"}});
}

TEST(Conv2d, HybridVariantsMatchReference) {
  testing::expect_variants_match_reference(random_hybrid_case, {.cases = 80, .must_cover = {"i8_gemm__simd"}});
}

}  // namespace
}  // namespace bantam::ops
