#include "ops/nn/conv_transpose2d/conv_transpose2d.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TEST(ConvTranspose2d, GivesTheStandardsExamples) {
  // ONNX test_convtranspose, channel 0, test_convtranspose_pads and test_convtranspose_dilations.
  const TestTensor x = tensor_of<float>({1, 3, 3, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  const TestTensor ones = tensor_of<float>({1, 3, 3, 1}, std::vector<float>(9, 1.0F));
  EXPECT_EQ(
      run_reference(make_case(kConvTranspose2d, ConvTranspose2dParams{}, {x, ones})).outputs[0].values<float>(),
      (std::vector<float>{0, 1, 3, 3, 2, 3, 8, 15, 12, 7, 9, 21, 36, 27, 15, 9, 20, 33, 24, 13, 6, 13, 21, 15, 8}));
  const ConvTranspose2dParams pads{
      .stride_h = 3, .stride_w = 2, .pad_top = 1, .pad_left = 2, .pad_bottom = 1, .pad_right = 2};
  EXPECT_EQ(run_reference(make_case(kConvTranspose2d, pads, {x, ones})).outputs[0].values<float>(),
            (std::vector<float>{1, 1, 3, 1, 1, 3, 7, 4, 9, 7, 4, 9, 7, 4, 9, 13, 7, 15, 13, 7, 15}));
  const Outcome dilated = run_reference(make_case(
      kConvTranspose2d, ConvTranspose2dParams{.dilation_h = 2, .dilation_w = 2},
      {tensor_of<float>({1, 3, 3, 1}, {3, 8, 1, 9, 5, 7, 3, 2, 6}), tensor_of<float>({1, 2, 2, 1}, {7, 2, 1, 9})}));
  EXPECT_EQ(dilated.outputs[0].values<float>(), (std::vector<float>{21, 56, 13, 16, 2,  63, 35, 67, 10, 14, 24, 22, 76,
                                                                    76, 21, 9,  5,  88, 45, 63, 3,  2,  33, 18, 54}));
}

ConvTranspose2dParams random_params(Random& random) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  return {.stride_h = draw(1, 4),
          .stride_w = draw(1, 4),
          .dilation_h = draw(1, 3),
          .dilation_w = draw(1, 3),
          .output_pad_h = draw(0, 3),
          .output_pad_w = draw(0, 3)};
}

/// Random parameters with paddings that leave something of the image, for groups of `cg` channels of the operand and
/// `og` of the result, and images of at most so many columns and rows.
OpCase random_case(Random& random, std::int64_t groups, std::int64_t cg, std::int64_t og, std::int64_t columns = 9,
                   std::int64_t rows = 6) {
  ConvTranspose2dParams p = random_params(random);
  p.groups = static_cast<std::int32_t>(groups);
  const std::int64_t n = random_int(random, 1, 2), h = random_int(random, 1, rows), w = random_int(random, 1, columns);
  const std::int64_t kh = random_int(random, 1, 4), kw = random_int(random, 1, 5);
  const auto split = [&](std::int64_t room, std::int32_t* before, std::int32_t* after) {
    *before = static_cast<std::int32_t>(random_int(random, 0, room / 2));
    *after = static_cast<std::int32_t>(random_int(random, 0, room / 2));
  };
  split(p.stride_h * (h - 1) + p.dilation_h * (kh - 1), &p.pad_top, &p.pad_bottom);
  split(p.stride_w * (w - 1) + p.dilation_w * (kw - 1), &p.pad_left, &p.pad_right);
  if (random_int(random, 0, 1) == 1) p.activation.function = UnaryFunction::kRelu;
  const auto tensor = [&](const std::vector<std::int64_t>& dims) {
    return random_tensor(ElementType::kF32, dims, random);
  };
  return make_case(kConvTranspose2d, p,
                   {tensor({n, h, w, cg * p.groups}), constant(tensor({og * p.groups, kh, kw, cg})),
                    random_int(random, 0, 1) == 1 ? Operand(tensor({og * p.groups})) : absent()});
}

OpCase random_conv_transpose2d_case(Random& random) {
  return random_case(random, random_int(random, 1, 3), random_int(random, 1, 6), random_int(random, 1, 20));
}

TEST(ConvTranspose2d, VariantsMatchReference) {
  for (const char* kernel : {"f32_gemm", "f32_columns"})
    expect_packing_variants_match_reference(random_conv_transpose2d_case, kernel, 150);
}

// More weights than a cache keeps from row to row: panels of them meet all rows.
TEST(ConvTranspose2d, ManyWeightsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        return random_case(random, random_int(random, 1, 2), random_int(random, 120, 160),
                           random_int(random, 250, 300));
      },
      {.cases = 8, .must_cover = {"f32_gemm__simd"}});
}

TEST(ConvTranspose2d, DepthwiseMatchesReference) {
  expect_packing_variants_match_reference(
      [](Random& random) { return random_case(random, random_int(random, 1, 70), 1, 1); }, "f32_depthwise", 100);
}

// Vectors hold several outputs of the few channels.
TEST(ConvTranspose2d, DepthwiseOfFewChannelsMatchesReference) {
  expect_packing_variants_match_reference(
      [](Random& random) { return random_case(random, random_int(random, 1, 9), 1, 1, 150); }, "f32_depthwise", 100);
}

/// A case of integers: scales reach from tiny to beyond 1. Windows of every phase reach beyond the image somewhere.
/// `group_outputs`: 0 for any.
OpCase random_integer_case(Random& random, ElementType type, std::int64_t group_outputs = 0) {
  ConvTranspose2dParams p = random_params(random);
  const bool bytes = type == ElementType::kI8;
  const double lowest = bytes ? -128 : -32768, highest = bytes ? 127 : 32767;
  p.groups = static_cast<std::int32_t>(group_outputs != 0 ? 1 : random_int(random, 1, 3));
  if (group_outputs != 0) p.dilation_h = p.dilation_w = 1;
  p.input_zero_point = bytes ? static_cast<std::int32_t>(random_int(random, -128, 127)) : 0;
  p.output_zero_point = bytes ? static_cast<std::int32_t>(random_int(random, -128, 127)) : 0;
  p.minimum = static_cast<std::int32_t>(random_int(random, static_cast<std::int64_t>(lowest), 0));
  p.maximum = static_cast<std::int32_t>(random_int(random, 0, static_cast<std::int64_t>(highest)));
  const std::int64_t cg = random_int(random, 1, 40),
                     og = group_outputs != 0 ? group_outputs : random_int(random, 1, 40);
  const std::int64_t oc = og * p.groups;
  const std::int64_t h = random_int(random, 1, 6), w = random_int(random, 1, 20);
  const std::int64_t kh = random_int(random, 1, 5), kw = random_int(random, 1, 5);
  const auto pad = [&](std::int64_t stride, std::int64_t in, std::int64_t dilation, std::int64_t kernel) {
    return static_cast<std::int32_t>(random_int(random, 0, (stride * (in - 1) + dilation * (kernel - 1)) / 2));
  };
  p.pad_top = pad(p.stride_h, h, p.dilation_h, kh);
  p.pad_bottom = pad(p.stride_h, h, p.dilation_h, kh);
  p.pad_left = pad(p.stride_w, w, p.dilation_w, kw);
  p.pad_right = pad(p.stride_w, w, p.dilation_w, kw);
  const std::vector<std::int64_t> image{random_int(random, 1, 2), h, w, cg * p.groups};
  return make_case(
      kConvTranspose2d, p,
      {random_tensor(type, image, random, lowest, highest),
       constant(random_tensor(ElementType::kI8, {oc, kh, kw, cg}, random, -128, 127)),
       random_int(random, 0, 1) == 1 ? constant(random_tensor(ElementType::kI32, {oc}, random, -20000, 20000))
                                     : absent(),
       constant(random_tensor(ElementType::kI32, {oc}, random, 0x40000000, 0x7fffffff)),
       constant(random_tensor(ElementType::kI32, {oc}, random, -14, 2))});
}

TEST(ConvTranspose2d, IntegersMatchReferenceExactly) {
  for (const ElementType type : {ElementType::kI8, ElementType::kI16})
    expect_variants_match_reference([=](Random& random) { return random_integer_case(random, type); },
                                    {.cases = 150, .must_cover = {"i8_gemm__simd"}});
}

TEST(ConvTranspose2d, IntegersOfFewOutputsMatchReferenceExactly) {
  expect_variants_match_reference(
      [](Random& random) { return random_integer_case(random, ElementType::kI8, random_int(random, 1, 5)); },
      {.cases = 150, .must_cover = {"i8_columns__simd"}});
}

/// Weights of 5x4 taps that meet an image of so many pixels a side; fewer outputs than the strides where it has one.
OpCase strided_case(std::int64_t extent, std::int64_t outputs) {
  Random random(5);
  std::vector<std::int8_t> weights;
  for (std::int64_t i = 0; i < outputs * 5 * 4 * 8; ++i)
    weights.push_back(static_cast<std::int8_t>(i * 37 % 251 - 125));
  const auto list = [&](std::int32_t value) {
    return constant(
        tensor_of<std::int32_t>({outputs}, std::vector<std::int32_t>(static_cast<std::size_t>(outputs), value)));
  };
  const ConvTranspose2dParams p{
      .stride_h = 4, .stride_w = 4, .pad_top = 2, .pad_left = 1, .pad_bottom = 1, .pad_right = 2};
  return make_case(
      kConvTranspose2d, p,
      {random_tensor(ElementType::kI8, {1, extent, extent, 8}, random, -128, 127),
       constant(tensor_of<std::int8_t>({outputs, 5, 4, 8}, weights)), absent(), list(0x50000000), list(-7)});
}

// The weights of a package serve images of several sizes.
TEST(ConvTranspose2d, WeightsArePackedTheSameForImagesOfEverySize) {
  std::set<std::string_view> covered;
  for (const std::int64_t outputs : {2, 20})
    for (const KernelVariant& variant : kConvTranspose2d.variants) {
      if (!variant_supports(strided_case(9, outputs), variant)) continue;
      covered.insert(variant.name);
      const std::vector<std::byte> packed = packed_operand(strided_case(9, outputs), variant, 1);
      for (const std::int64_t extent : {1, 2})
        EXPECT_EQ(packed_operand(strided_case(extent, outputs), variant, 1), packed)
            << variant.name << ", " << extent << " pixels a side, " << outputs << " outputs";
    }
  EXPECT_TRUE(covered.contains("i8_columns__simd") && covered.contains("i8_gemm__simd"));
}

/// Overlapping frames of a signal, as the inverse of a short-time Fourier transform adds them: a stride beyond what the
/// products by phase take, and more input positions than one block of the columns holds.
OpCase overlapping_frames(Random& random) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  const std::int64_t frames = draw(1, 90), channels = draw(1, 40), kernel = draw(20, 80);
  const std::int64_t room = std::min<std::int64_t>(kernel - 1, 30);
  const ConvTranspose2dParams p{
      .stride_w = draw(17, 40), .pad_left = draw(0, room / 2), .pad_right = draw(0, room / 2)};
  return make_case(kConvTranspose2d, p,
                   {random_tensor(ElementType::kF32, {1, 1, frames, channels}, random),
                    constant(random_tensor(ElementType::kF32, {draw(1, 2), 1, kernel, channels}, random)), absent()});
}

TEST(ConvTranspose2d, OverlappingFramesMatchReference) {
  expect_packing_variants_match_reference(overlapping_frames, "f32_columns", 40);
}

// Images that are large enough for threads to share rows of the result, whose sums are those of one thread.
TEST(ConvTranspose2d, SharedRowsMatchReference) {
  expect_packing_variants_match_reference(
      [](Random& random) {
        return random_case(random, 1, random_int(random, 8, 24), random_int(random, 1, 6), 60, 70);
      },
      "f32_columns", 25);
}

// Sequences so long that threads share the outputs of the one row that there is, of few columns and of many.
TEST(ConvTranspose2d, LongSequencesMatchReference) {
  expect_packing_variants_match_reference(
      [](Random& random) {
        return random_case(random, random_int(random, 1, 2), random_int(random, 8, 40),
                           random_int(random, 1, random_int(random, 0, 3) == 0 ? 200 : 70), 160, 1);
      },
      "f32_gemm", 60);
}

/// A sequence of as many samples as make several blocks of products for a thread.
OpCase long_sequence(Random& random) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  const std::int64_t samples = draw(100, 700), channels = draw(8, 60), outputs = draw(1, 24), kernel = draw(1, 9);
  const ConvTranspose2dParams p{
      .stride_w = draw(1, 9),
      .dilation_w = draw(1, 2),
      .pad_left = draw(0, 9),
      .pad_right = draw(0, 9),
      .activation = {draw(0, 1) != 0 ? UnaryFunction::kRelu : UnaryFunction::kIdentity, 0, 0}};
  return make_case(kConvTranspose2d, p,
                   {random_tensor(ElementType::kF32, {draw(1, 2), 1, samples, channels}, random),
                    constant(random_tensor(ElementType::kF32, {outputs, 1, kernel, channels}, random)),
                    draw(0, 1) != 0 ? Operand(random_tensor(ElementType::kF32, {outputs}, random)) : absent()});
}

// Threads share the samples; those near a cut get the same sums as from one thread.
TEST(ConvTranspose2d, LongSequencesOfFewOutputsMatchReference) {
  expect_packing_variants_match_reference(long_sequence, "f32_columns", 40);
}

// Batches of small images, of which threads take whole ones.
TEST(ConvTranspose2d, BatchesMatchReference) {
  expect_packing_variants_match_reference(
      [](Random& random) {
        const std::int64_t n = random_int(random, 3, 20), side = random_int(random, 2, 9),
                           c = random_int(random, 8, 40);
        const ConvTranspose2dParams p{.stride_h = 2, .stride_w = 2, .pad_left = 1};
        return make_case(
            kConvTranspose2d, p,
            {random_tensor(ElementType::kF32, {n, side, side, c}, random),
             constant(random_tensor(ElementType::kF32, {random_int(random, 1, 9), 2, 2, c}, random)), absent()});
      },
      "f32_columns", 30);
}

TEST(ConvTranspose2d, ReferenceAgreesWithScattering) {
  Random random(12);
  for (int round = 0; round < 100; ++round) {
    const OpCase op_case = random_conv_transpose2d_case(random);
    const Outcome outcome = run_reference(op_case);
    ASSERT_TRUE(outcome.status.ok());
    ConvTranspose2dParams p;
    std::memcpy(&p, op_case.params.data(), sizeof p);
    const TensorDesc& x = op_case.inputs[0].tensor.desc();
    const TensorDesc& w = op_case.inputs[1].tensor.desc();
    const TensorDesc& y = outcome.outputs[0].desc();
    const auto xs = op_case.inputs[0].tensor.to_doubles();
    const auto ws = op_case.inputs[1].tensor.to_doubles();
    const auto index = [](const TensorDesc& t, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
      return static_cast<std::size_t>(((a * t.dims[1] + b) * t.dims[2] + c) * t.dims[3] + d);
    };
    std::vector<double> sums(static_cast<std::size_t>(y.elements()), 0.0);
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (op_case.inputs[2].tensor.present())
        sums[i] = op_case.inputs[2].tensor.to_doubles()[i % static_cast<std::size_t>(y.dims[3])];
    for (std::int32_t n = 0; n < x.dims[0]; ++n)
      for (std::int32_t h = 0; h < x.dims[1]; ++h)
        for (std::int32_t v = 0; v < x.dims[2]; ++v)
          for (std::int32_t kh = 0; kh < w.dims[1]; ++kh)
            for (std::int32_t kw = 0; kw < w.dims[2]; ++kw) {
              const std::int32_t oh = p.stride_h * h + p.dilation_h * kh - p.pad_top;
              const std::int32_t ow = p.stride_w * v + p.dilation_w * kw - p.pad_left;
              if (oh < 0 || ow < 0 || oh >= y.dims[1] || ow >= y.dims[2]) continue;
              for (std::int32_t oc = 0; oc < y.dims[3]; ++oc)
                for (std::int32_t c = 0; c < w.dims[3]; ++c) {
                  const std::int32_t channel = oc / (y.dims[3] / p.groups) * w.dims[3] + c;
                  sums[index(y, n, oh, ow, oc)] += xs[index(x, n, h, v, channel)] * ws[index(w, oc, kh, kw, c)];
                }
            }
    const auto actual = outcome.outputs[0].to_doubles();
    for (std::size_t i = 0; i < sums.size(); ++i)
      ASSERT_NEAR(actual[i], p.activation.function == UnaryFunction::kRelu ? std::max(sums[i], 0.0) : sums[i], 1e-5)
          << "round " << round;
  }
}

TEST(ConvTranspose2d, EmptyImagesGiveEmptyResults) {
  const Outcome y = run_reference(make_case(kConvTranspose2d, ConvTranspose2dParams{},
                                            {tensor_of<float>({1, 0, 3, 1}, {}), tensor_of<float>({1, 1, 1, 1}, {1})}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(y.outputs[0].desc().elements(), 0);
}

TEST(ConvTranspose2d, RefusesHostileParameters) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<float>({1, 1, 1, 2}, {1, 2});
  const TestTensor w = tensor_of<float>({2, 1, 1, 2}, {1, 2, 3, 4});
  const auto accepted = [&](const ConvTranspose2dParams& p, std::vector<Operand> operands) {
    return infer_case(make_case(kConvTranspose2d, p, std::move(operands)), &outputs).ok();
  };
  EXPECT_TRUE(accepted({}, {x, w}));
  EXPECT_FALSE(accepted({.stride_h = 0}, {x, w}));
  EXPECT_FALSE(accepted({.dilation_w = -1}, {x, w}));
  EXPECT_FALSE(accepted({.pad_top = -1}, {x, w}));
  EXPECT_FALSE(accepted({.pad_top = 2}, {x, w}));
  EXPECT_FALSE(accepted({.output_pad_h = 0x7fffffff, .output_pad_w = 0x7fffffff}, {x, w}));
  EXPECT_FALSE(accepted({.groups = 0}, {x, w}));
  EXPECT_FALSE(accepted({.groups = 2}, {x, w}));
  EXPECT_FALSE(accepted({.activation = {.function = UnaryFunction::kSin}}, {x, w}));
  EXPECT_FALSE(accepted({}, {x, tensor_of<float>({2, 0, 1, 2}, {})}));
  EXPECT_FALSE(accepted({}, {x, w, tensor_of<float>({3}, {1, 2, 3})}));
  EXPECT_FALSE(accepted({}, {tensor_of<float>({1, 1, 2}, {1, 2}), w}));
}

}  // namespace
}  // namespace bantam::ops
