#include "ops/nn/resize_affine/resize_affine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests
using ::testing::ElementsAre;

ResizeAffineParams twice_as_wide(ResizeMode mode = ResizeMode::kLinear) {
  ResizeAffineParams p{.resize = {.mode = mode}};
  p.resize.sizes = {2, {1, 4}};
  p.resize.scales[1] = 2.0F;
  return p;
}

TEST(ResizeAffine, InterpolatesInStepsAndRoundsHalvesToEven) {
  ResizeAffineParams p = twice_as_wide();
  const auto row = [&](std::int8_t a, std::int8_t b) {
    return run_reference(make_case(kResizeAffine, p, {tensor_of<std::int8_t>({1, 2}, {a, b})}))
        .outputs[0]
        .values<std::int8_t>();
  };
  EXPECT_THAT(row(0, 10), ElementsAre(0, 2, 8, 10)) << "2.5 and 7.5";
  p.x_zero_point = 1;
  p.y_zero_point = 3;
  EXPECT_THAT(row(1, 11), ElementsAre(3, 5, 11, 13)) << "halves of steps from the zero point";
  p.x_scale = 0.5F;
  p.y_scale = 0.25F;
  EXPECT_THAT(row(1, 11), ElementsAre(3, 8, 18, 23));
  p.maximum = 10;
  EXPECT_THAT(row(1, 11), ElementsAre(3, 8, 10, 10));
}

TEST(ResizeAffine, ResultsAreThoseOfFloatsWhereTheGridIsTheSame) {
  Random random(3);
  for (const ResizeMode mode : {ResizeMode::kLinear, ResizeMode::kCubic}) {
    const ResizeAffineParams p = twice_as_wide(mode);
    const auto x = random_tensor(ElementType::kI8, {1, 2}, random, -128, 127);
    std::vector<float> real;
    for (const std::int8_t q : x.values<std::int8_t>()) real.push_back(q);
    const auto expected = run_reference(make_case(kResize, p.resize, {tensor_of<float>({1, 2}, real)}));
    const auto actual = run_reference(make_case(kResizeAffine, p, {x})).outputs[0].values<std::int8_t>();
    for (std::size_t i = 0; i < actual.size(); ++i)
      EXPECT_NEAR(actual[i], std::clamp(expected.outputs[0].values<float>()[i], -128.0F, 127.0F), 0.501F);
  }
}

OpCase random_resize_affine_case(Random& random) {
  const auto some = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  const ElementType type = some(0, 1) == 0 ? ElementType::kI8 : ElementType::kU8;
  const ElementType to = some(0, 3) == 0 ? ElementType::kI8 : ElementType::kU8;
  constexpr ResizeCoordinates kCoordinates[] = {ResizeCoordinates::kHalfPixel, ResizeCoordinates::kAsymmetric,
                                                ResizeCoordinates::kAlignCorners, ResizeCoordinates::kPytorchHalfPixel};
  ResizeAffineParams p{.resize = {.mode = some(0, 2) == 0 ? ResizeMode::kCubic : ResizeMode::kLinear,
                                  .coordinates = kCoordinates[some(0, 3)],
                                  .exclude_outside = 0}};
  if (p.resize.mode == ResizeMode::kCubic) p.resize.exclude_outside = some(0, 1);
  // Channels last, channels first, or any axes.
  const int kind = some(0, 2);
  const std::vector<std::int64_t> dims{some(1, 2), kind == 1 ? some(1, 3) : some(1, 9), some(1, 20),
                                       kind == 0 ? some(1, 90) : some(1, 40)};
  p.resize.sizes.size = 4;
  const std::int32_t whole =
      some(0, 1) == 0 ? 1 << some(1, 3) : 0;  // whose weights are 16ths or more, half a pixel off
  for (int i = 0; i < 4; ++i) {
    const auto extent = static_cast<std::int32_t>(dims[static_cast<std::size_t>(i)]);
    const bool resampled = kind == 0 ? i == 1 || i == 2 : kind == 1 ? i >= 2 : i > 0 && some(0, 1) == 0;
    p.resize.sizes.v[i] = !resampled ? extent : whole != 0 ? whole * extent : some(1, 2 * extent + 3);
    p.resize.scales[i] = static_cast<float>(p.resize.sizes.v[i]) / static_cast<float>(extent);
  }
  const auto zero_point = [&](ElementType of) { return of == ElementType::kI8 ? some(-128, 127) : some(0, 255); };
  p.x_zero_point = zero_point(type);
  p.y_zero_point = zero_point(to);
  p.to = to;
  // Equal grids make many halves.
  constexpr float kScales[] = {0.5F, 0.3F, 0.5e4F, 0.5e9F, 1e-38F, 1e38F};
  p.x_scale = kScales[some(0, 1) == 0 ? 0 : some(0, 5)];
  p.y_scale = 0.5F;
  p.minimum = to == ElementType::kI8 ? -128 : 0;
  p.maximum = some(0, 3) == 0 ? 100 : p.minimum + 255;
  const bool is_signed = type == ElementType::kI8;
  return make_case(kResizeAffine, p, {random_tensor(type, dims, random, is_signed ? -128 : 0, is_signed ? 127 : 255)});
}

TEST(ResizeAffine, VariantsMatchReferenceExactly) {
  expect_variants_match_reference(random_resize_affine_case, {.cases = 300, .must_cover = {"i8_rows__simd"}});
}

TEST(ResizeAffine, WeightsThatAreNoNumbersGiveTheZeroPoint) {
  ResizeAffineParams p = twice_as_wide(ResizeMode::kCubic);
  p.resize.cubic_coefficient = std::numeric_limits<float>::quiet_NaN();
  p.y_zero_point = 7;
  const OpCase op_case = make_case(kResizeAffine, p, {tensor_of<std::int8_t>({1, 2}, {1, 2})});
  for (const KernelVariant& variant : kResizeAffine.variants)
    EXPECT_THAT(run_variant(op_case, variant).outputs[0].values<std::int8_t>(), ElementsAre(7, 7, 7, 7))
        << variant.name;
}

TEST(ResizeAffine, RefusesWhatHasNoQuantisedForm) {
  const auto code = [](ResizeAffineParams p, ElementType type = ElementType::kI8) {
    std::vector<TensorDesc> outputs;
    return infer_case(make_case(kResizeAffine, p, {TestTensor(dense_desc(type, {1, 2}))}), &outputs).code;
  };
  EXPECT_EQ(code(twice_as_wide()), StatusCode::kOk);
  EXPECT_EQ(code(twice_as_wide(ResizeMode::kNearest)), StatusCode::kUnsupported);
  EXPECT_EQ(code(twice_as_wide(), ElementType::kF32), StatusCode::kUnsupported);
  ResizeAffineParams p = twice_as_wide();
  p.resize.antialias = 1;
  EXPECT_EQ(code(p), StatusCode::kUnsupported);
  p = twice_as_wide();
  p.y_scale = 0.0F;
  EXPECT_EQ(code(p), StatusCode::kInvalidModel);
  p = twice_as_wide();
  p.x_zero_point = 200;
  EXPECT_EQ(code(p), StatusCode::kInvalidModel);
  p = {};
  std::vector<TensorDesc> outputs;
  p.resize.sizes = {4, {2, 2, 2, 2}};
  EXPECT_EQ(
      infer_case(make_case(kResizeAffine, p, {TestTensor(dense_desc(ElementType::kI8, {1, 1, 1, 1}))}), &outputs).code,
      StatusCode::kUnsupported)
      << "four axes";
  p = twice_as_wide();
  p.resize.sizes.size = 1;
  EXPECT_EQ(code(p), StatusCode::kInvalidModel);
}

}  // namespace
}  // namespace bantam::ops
