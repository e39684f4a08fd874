#include "ops/nn/conv_transpose2d_affine/conv_transpose2d_affine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/testing/affine_form.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary
using ::testing::ElementsAre;

TEST(ConvTranspose2dAffine, SubtractsBothZeroPointsAndAddsWhatMeets) {
  // x - 128 = 2, 3 and w - 3 = 1, 10, 100 with stride 2: 2, 20, 200 + 3, 30, 300.
  const Outcome y = run_reference(make_case(
      kConvTranspose2dAffine, ConvTranspose2dAffineParams{.stride_w = 2, .form = form_to(ElementType::kI32, 128, 3)},
      {tensor_of<std::uint8_t>({1, 1, 2, 1}, {130, 131}), tensor_of<std::uint8_t>({1, 1, 3, 1}, {4, 13, 103})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<std::int32_t>(), ElementsAre(2, 20, 203, 30, 300));
}

TEST(ConvTranspose2dAffine, RoundsHalvesToEvenAndLimits) {
  // Sums 1, 3, 5, 15 times 0.5 plus 1: 0.5 -> 0, 1.5 -> 2, 2.5 -> 2, 7.5 -> 8, with the 1 no more than 7.
  ConvTranspose2dAffineParams p{.stride_w = 2, .form = form_to(ElementType::kI8, 0, 0, 1)};
  p.form.maximum = 7;
  const Outcome y =
      run_reference(make_case(kConvTranspose2dAffine, p,
                              {tensor_of<std::int8_t>({1, 1, 2, 1}, {1, 5}),
                               tensor_of<std::int8_t>({1, 1, 2, 1}, {1, 3}), absent(), tensor_of<float>({1}, {0.5F})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<std::int8_t>(), ElementsAre(1, 3, 3, 7));
}

TEST(ConvTranspose2dAffine, RefusesWhatDoesNotFit) {
  const auto x = tensor_of<std::int8_t>({1, 1, 1, 2}, {4, 4});
  const auto w = tensor_of<std::int8_t>({1, 1, 1, 2}, {4, 4});
  const auto scale = tensor_of<float>({1}, {1.0F});
  const auto ok = [&](const ConvTranspose2dAffineParams& p, std::vector<Operand> operands) {
    return run_reference(make_case(kConvTranspose2dAffine, p, std::move(operands))).status.ok();
  };
  const AffineForm bytes = form_to(ElementType::kI8);
  EXPECT_TRUE(ok({.form = bytes}, {x, w, absent(), scale}));
  EXPECT_FALSE(ok({.form = bytes}, {x, w})) << "no scale";
  EXPECT_FALSE(ok({.form = form_to(ElementType::kI32)}, {x, w, absent(), scale})) << "a scale of sums";
  EXPECT_FALSE(ok({.form = form_to(ElementType::kI8, 128)}, {x, w, absent(), scale}));
  EXPECT_FALSE(ok({.form = bytes}, {x, w, absent(), tensor_of<float>({2}, {1, 1})}));
  EXPECT_FALSE(ok({.groups = 2, .form = bytes}, {x, w, absent(), scale}));
  EXPECT_FALSE(ok({.stride_h = 0, .form = bytes}, {x, w, absent(), scale}));
  EXPECT_FALSE(ok({.pad_top = 2, .form = bytes}, {x, w, absent(), scale}));
  EXPECT_FALSE(ok({.output_pad_h = -1, .form = bytes}, {x, w, absent(), scale}));
}

/// A random case that infer accepts; sizes around the kernels' tiles and vectors. `few`: outputs.
OpCase random_case(Random& random, bool few) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  const auto zero_of = [&](ElementType type) { return type == ElementType::kU8 ? draw(0, 255) : draw(-128, 127); };
  constexpr ElementType kResults[] = {ElementType::kI8, ElementType::kU8, ElementType::kI32, ElementType::kF32};
  const ElementType to = kResults[draw(0, 3)];
  const ElementType x_type = kResults[draw(0, 1)];
  const ElementType w_type = kResults[draw(0, 1)];
  ConvTranspose2dAffineParams p;
  p.form = form_to(to, zero_of(x_type), draw(0, 1) == 0 ? 0 : zero_of(w_type));
  const std::int32_t h = draw(1, 6), w = draw(1, 40), kh = draw(1, 5), kw = draw(1, 5);
  p.stride_h = draw(1, few ? 3 : kh);
  p.stride_w = draw(1, few ? 3 : kw);
  if (!few) p.dilation_w = draw(1, 2);
  if (!few) p.groups = draw(1, 3);
  const auto pad = [&](std::int32_t stride, std::int32_t in, std::int32_t dilation, std::int32_t kernel) {
    return draw(0, std::min((stride * (in - 1) + dilation * (kernel - 1)) / 2, 9));
  };
  p.pad_top = pad(p.stride_h, h, 1, kh);
  p.pad_bottom = pad(p.stride_h, h, 1, kh);
  p.pad_left = pad(p.stride_w, w, p.dilation_w, kw);
  p.pad_right = pad(p.stride_w, w, p.dilation_w, kw);
  p.output_pad_h = draw(0, 1);
  p.output_pad_w = draw(0, 2);
  if (to == ElementType::kI8 || to == ElementType::kU8) {
    p.form.output_zero_point = zero_of(to);
    if (draw(0, 1) == 0) p.form.activation = {UnaryFunction::kLeakyRelu, 0.1F, 0.0F};
    p.form.output_scale = 0.5F;
  }
  const std::int64_t cg = draw(1, 40), oc = p.groups * draw(1, few ? 6 : 40);
  std::vector<Operand> inputs;
  inputs.emplace_back(random_tensor(x_type, {draw(1, 2), h, w, cg * p.groups}, random, -128, 255));
  inputs.push_back(constant(random_tensor(w_type, {oc, kh, kw, cg}, random, -128, 255)));
  const ElementType bias = p.form.has_real_bias() ? ElementType::kF32 : ElementType::kI32;
  inputs.push_back(draw(0, 1) == 0 ? absent() : constant(random_tensor(bias, {oc}, random, -900, 900)));
  const std::int64_t scales = draw(0, 1) == 0 ? 1 : oc;
  inputs.push_back(to == ElementType::kI32 ? absent()
                                           : constant(random_tensor(ElementType::kF32, {scales}, random, 0.001, 0.01)));
  if (draw(0, 3) == 0) {
    inputs.emplace_back(random_tensor(x_type, {1}, random, 0, 127));
    if (!few) inputs.emplace_back(random_tensor(w_type, {draw(0, 1) == 0 ? 1 : oc}, random, 0, 127));
  }
  return make_case(kConvTranspose2dAffine, p, std::move(inputs));
}

TEST(ConvTranspose2dAffine, VariantsMatchReference) {
  expect_variants_match_reference([](Random& random) { return random_case(random, false); },
                                  {.cases = 150, .must_cover = {"i8_gemm__simd"}});
}

TEST(ConvTranspose2dAffine, VariantsOfFewOutputsMatchReference) {
  expect_variants_match_reference([](Random& random) { return random_case(random, true); },
                                  {.cases = 150, .must_cover = {"i8_columns__simd"}});
}

}  // namespace
}  // namespace bantam::ops
