#include "ops/nn/resize/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "ops/nn/resize/sampling.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

struct Size {
  std::int32_t size;
  float scale;
};

ResizeParams with_sizes(ResizeParams p, const std::vector<Size>& sizes) {
  for (const auto& [size, scale] : sizes) {
    p.scales[p.sizes.size] = scale;
    p.sizes.v[p.sizes.size++] = size;
  }
  return p;
}

/// The picture 1, 2, 3 ... of that size, resized.
std::vector<float> resize(const ResizeParams& p, std::int64_t h, std::int64_t w, Size out_h, Size out_w) {
  TestTensor x(dense_desc(ElementType::kF32, {h, w}));
  std::vector<float> values(static_cast<std::size_t>(h * w));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  x.set_values(values);
  const Outcome y = run_reference(make_case(kResize, with_sizes(p, {out_h, out_w}), {x}));
  EXPECT_TRUE(y.status.ok()) << y.status.message;
  return y.outputs.empty() ? std::vector<float>{} : y.outputs[0].values<float>();
}

TEST(Resize, LinearExamplesOfTheStandard) {
  // ONNX test_resize_{down,up}sample_scales_linear, ..._align_corners, ..._sizes_linear_pytorch_half_pixel.
  const ResizeParams p{.mode = ResizeMode::kLinear};
  expect_near(resize(p, 2, 4, {1, 0.6F}, {2, 0.6F}), {2.6666665F, 4.333333F});
  expect_near(resize(p, 2, 2, {4, 2}, {4, 2}),
              {1, 1.25F, 1.75F, 2, 1.5F, 1.75F, 2.25F, 2.5F, 2.5F, 2.75F, 3.25F, 3.5F, 3, 3.25F, 3.75F, 4});
  expect_near(
      resize({.mode = ResizeMode::kLinear, .coordinates = ResizeCoordinates::kAlignCorners}, 2, 2, {4, 2}, {4, 2}),
      {1, 1.3333334F, 1.6666666F, 2, 1.6666666F, 2, 2.3333333F, 2.6666667F, 2.3333333F, 2.6666667F, 3, 3.3333333F, 3,
       3.3333333F, 3.6666667F, 4});
  expect_near(resize({.mode = ResizeMode::kLinear, .coordinates = ResizeCoordinates::kPytorchHalfPixel}, 4, 4,
                     {3, 0.75F}, {1, 0.25F}),
              {1.6666666F, 7, 12.333333F});
}

TEST(Resize, CubicExampleOfTheStandard) {
  // ONNX test_resize_downsample_scales_cubic_A_n0p5_exclude_outside.
  expect_near(resize({.mode = ResizeMode::kCubic, .cubic_coefficient = -0.5F, .exclude_outside = 1}, 4, 4, {3, 0.8F},
                     {3, 0.8F}),
              {1.3681267F, 2.6695013F, 4.0133367F, 6.573625F, 7.875F, 9.218835F, 11.948966F, 13.250341F, 14.594176F});
}

TEST(Resize, CropExampleOfTheStandard) {
  // ONNX test_resize_tf_crop_and_resize.
  ResizeParams p{.mode = ResizeMode::kLinear, .coordinates = ResizeCoordinates::kCropAndResize};
  p.roi_start[0] = 0.4F;
  p.roi_start[1] = 0.6F;
  p.roi_end[0] = 1.2F;
  p.roi_end[1] = 1.7F;
  p.extrapolation = 10;
  expect_near(resize(p, 4, 4, {3, 0.75F}, {3, 0.75F}), {7.6000004F, 10, 10, 12.400001F, 10, 10, 10, 10, 10});
}

TEST(Resize, NearestExamplesOfTheStandard) {
  const auto row = [](ResizeCoordinates coordinates, ResizeNearest nearest) {
    return resize({.coordinates = coordinates, .nearest = nearest}, 1, 4, {1, 1}, {8, 2});
  };
  using V = std::vector<float>;
  // First rows of ONNX test_resize_upsample_sizes_nearest_{ceil_half_pixel, floor_align_corners,
  // round_prefer_ceil_asymmetric}.
  EXPECT_EQ(row(ResizeCoordinates::kHalfPixel, ResizeNearest::kCeil), (V{1, 2, 2, 3, 3, 4, 4, 4}));
  EXPECT_EQ(row(ResizeCoordinates::kAlignCorners, ResizeNearest::kFloor), (V{1, 1, 1, 2, 2, 3, 3, 4}));
  EXPECT_EQ(row(ResizeCoordinates::kAsymmetric, ResizeNearest::kRoundPreferCeil), (V{1, 2, 2, 3, 3, 4, 4, 4}));
  EXPECT_EQ(row(ResizeCoordinates::kHalfPixel, ResizeNearest::kRoundPreferFloor), (V{1, 1, 2, 2, 3, 3, 4, 4}));
}

TEST(Resize, AntialiasingCountsEveryElement) {
  // Halving with a triangle two elements wide on either side: weights 1, 3, 3, 1 in eighths; at the ends the part that
  // lies outside falls on the last element.
  const auto row = [](ResizeParams p) {
    p.antialias = 1;
    return resize(p, 1, 8, {1, 1}, {4, 0.5F});
  };
  expect_near(row({.mode = ResizeMode::kLinear}), {1.625F, 3.5F, 5.5F, 7.375F});
  // Excluded, it falls on all elements inside: 3, 3, 1 in sevenths.
  expect_near(row({.mode = ResizeMode::kLinear, .exclude_outside = 1}), {12.0F / 7, 3.5F, 5.5F, 9 - 12.0F / 7});
  // Enlarging needs no wider filter.
  ResizeParams up{.mode = ResizeMode::kCubic, .exclude_outside = 1};
  const auto plain = resize(up, 1, 4, {1, 1}, {7, 1.75F});
  up.antialias = 1;
  expect_near(resize(up, 1, 4, {1, 1}, {7, 1.75F}), plain);
}

TEST(Resize, AntialiasingThreadsGiveTheSame) {
  expect_variants_match_reference([](Random& random) {
    ResizeParams p{.mode = random_int(random, 0, 1) == 0 ? ResizeMode::kLinear : ResizeMode::kCubic,
                   .coordinates = static_cast<ResizeCoordinates>(random_int(random, 0, 4)),
                   .exclude_outside = static_cast<std::int32_t>(random_int(random, 0, 1)),
                   .antialias = 1};
    const std::vector<std::int64_t> dims{2, random_int(random, 3, 12), 3};
    const auto size = static_cast<std::int32_t>(random_int(random, 2, 14));
    p.sizes = {3, {2, size, 3}};
    p.scales[1] = static_cast<float>(size) / static_cast<float>(dims[1]);
    return make_case(kResize, p, {random_tensor(ElementType::kF32, dims, random)});
  });
}

TEST(Resize, CoordinatesJustBelowAHalfRoundDown) {
  // 2 / (4 / 7) is 3.4999998 in float, whose sum with a half is 4: ONNX Runtime takes element 3.
  const auto y = resize({.coordinates = ResizeCoordinates::kAsymmetric, .nearest = ResizeNearest::kRoundPreferCeil}, 1,
                        7, {1, 1}, {4, 4.0F / 7});
  EXPECT_EQ(y, (std::vector<float>{1, 3, 4, 6}));
}

TEST(Resize, NearestMovesElementsOfAnyType) {
  const TestTensor x = tensor_of<std::int8_t>({1, 2, 2}, {1, 2, 3, 4});
  const ResizeParams p = with_sizes({.coordinates = ResizeCoordinates::kAsymmetric, .nearest = ResizeNearest::kFloor},
                                    {{1, 1}, {4, 2}, {2, 1}});
  EXPECT_EQ(run_reference(make_case(kResize, p, {x})).outputs[0].values<std::int8_t>(),
            (std::vector<std::int8_t>{1, 2, 1, 2, 3, 4, 3, 4}));
}

TEST(Resize, SymmetricHalfPixelsKeepTheCentre) {
  // Two of ten elements at scale 0.25 (2.5 floored): centred on the operand.
  const auto y = resize({.mode = ResizeMode::kLinear, .coordinates = ResizeCoordinates::kHalfPixelSymmetric}, 1, 10,
                        {1, 1}, {2, 0.25F});
  EXPECT_NEAR(y[0] + y[1], 11, 1e-5);
}

TEST(Resize, ThreeAxesInterpolateTogether) {
  const TestTensor x = tensor_of<float>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const ResizeParams p = with_sizes({.mode = ResizeMode::kLinear, .coordinates = ResizeCoordinates::kAlignCorners},
                                    {{3, 1.5F}, {3, 1.5F}, {3, 1.5F}});
  const auto y = run_reference(make_case(kResize, p, {x})).outputs[0].values<float>();
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 3; ++k)
        EXPECT_NEAR(y[(i * 3 + j) * 3 + k], 0.5 * static_cast<double>(4 * i + 2 * j + k), 1e-6);
}

OpCase random_resize_case(Random& random) {
  ResizeParams p{.mode = static_cast<ResizeMode>(random_int(random, 0, 2)),
                 .coordinates = static_cast<ResizeCoordinates>(random_int(random, 0, 5)),
                 .nearest = static_cast<ResizeNearest>(random_int(random, 0, 3)),
                 .exclude_outside = static_cast<std::int32_t>(random_int(random, 0, 1)),
                 .extrapolation = 7};
  const std::vector<std::int64_t> dims{random_int(random, 1, 2), random_int(random, 1, 7), random_int(random, 1, 7),
                                       random_int(random, 1, 20)};
  for (int i = 0; i < 4; ++i) {
    const bool resampled = i == 1 || i == 2;
    const auto dim = static_cast<std::int32_t>(dims[static_cast<std::size_t>(i)]);
    const auto size = resampled ? static_cast<std::int32_t>(random_int(random, 0, 12)) : dim;
    p.sizes.v[p.sizes.size++] = size;
    p.scales[i] = size == dim || size == 0 ? 1.0F : static_cast<float>(size) / static_cast<float>(dim);
    if (resampled) p.roi_start[i] = static_cast<float>(random_int(random, -2, 5)) / 10;
  }
  return make_case(kResize, p, {random_tensor(ElementType::kF32, dims, random)});
}

TEST(Resize, VariantsMatchReference) {
  expect_variants_match_reference(random_resize_case, {.cases = 200, .must_cover = {"any_rows__simd"}});
}

/// Nearest by integers, in planes or volumes of any element size.
OpCase upsampling_case(Random& random) {
  constexpr ElementType kTypes[] = {ElementType::kU8, ElementType::kF16, ElementType::kF32, ElementType::kF64};
  std::vector<std::int64_t> dims = {random_int(random, 1, 2), random_int(random, 1, 3), random_int(random, 1, 5),
                                    random_int(random, 1, 70)};
  ResizeParams p{.coordinates = ResizeCoordinates::kAsymmetric, .nearest = ResizeNearest::kFloor};
  for (const std::int64_t dim : dims) {
    const std::int64_t times = p.sizes.size == 0 ? 1 : random_int(random, 1, 4);
    p = with_sizes(p, {{static_cast<std::int32_t>(dim * times), static_cast<float>(times)}});
  }
  return make_case(kResize, p, {random_tensor(kTypes[random_int(random, 0, 3)], dims, random)});
}

TEST(Resize, UpsamplingMatchesReference) {
  expect_variants_match_reference(upsampling_case, {.cases = 100, .must_cover = {"any_rows__simd"}});
}

TEST(Resize, RefusesHostileParameters) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<float>({2}, {1, 2});
  const auto refused = [&](const ResizeParams& p, const TestTensor& operand) {
    return !infer_case(make_case(kResize, p, {operand}), &outputs).ok();
  };
  EXPECT_FALSE(refused(with_sizes({}, {{4, 2}}), x));
  EXPECT_TRUE(refused(with_sizes({}, {}), x));
  EXPECT_TRUE(refused(with_sizes({}, {{-1, 2}}), x));
  EXPECT_TRUE(refused(with_sizes({}, {{4, 0}}), x));
  EXPECT_TRUE(refused(with_sizes({}, {{4, -2}}), x));
  EXPECT_TRUE(refused(with_sizes({}, {{4, std::nanf("")}}), x));
  EXPECT_TRUE(refused(with_sizes({.mode = static_cast<ResizeMode>(3)}, {{4, 2}}), x));
  EXPECT_TRUE(refused(with_sizes({.coordinates = static_cast<ResizeCoordinates>(-1)}, {{4, 2}}), x));
  EXPECT_TRUE(refused(with_sizes({.nearest = static_cast<ResizeNearest>(9)}, {{4, 2}}), x));
  EXPECT_TRUE(refused(with_sizes({.exclude_outside = 3}, {{4, 2}}), x));
  EXPECT_TRUE(refused(with_sizes({.mode = ResizeMode::kLinear, .antialias = 2}, {{4, 2}}), x));
  EXPECT_TRUE(refused(with_sizes({.antialias = 1}, {{4, 2}}), x));
  EXPECT_TRUE(refused(with_sizes({.mode = ResizeMode::kLinear, .antialias = 1}, {{1, 1e-20F}}), x));
  EXPECT_FALSE(refused(with_sizes({.mode = ResizeMode::kLinear, .antialias = 1}, {{1, 0.5F}}), x));
  EXPECT_TRUE(refused(with_sizes({}, {{4, 2}}), tensor_of<float>({0}, {})));
  EXPECT_TRUE(refused(with_sizes({.mode = ResizeMode::kLinear}, {{4, 2}}), tensor_of<std::int8_t>({2}, {1, 2})));
}

TEST(Resize, ExtremeScalesSampleInside) {
  for (const ResizeMode mode : {ResizeMode::kNearest, ResizeMode::kLinear, ResizeMode::kCubic})
    for (int coordinates = 0; coordinates < 6; ++coordinates)
      for (const float scale : {1e-38F, 1e38F}) {
        const ResizeParams p =
            with_sizes({.mode = mode, .coordinates = static_cast<ResizeCoordinates>(coordinates)}, {{5, scale}});
        EXPECT_TRUE(run_reference(make_case(kResize, p, {tensor_of<float>({3}, {1, 2, 3})})).status.ok());
      }
}

/// Linear in planes of up to some vectors, by factors from a half to six.
OpCase plane_case(Random& random) {
  ResizeParams p{.mode = ResizeMode::kLinear, .coordinates = static_cast<ResizeCoordinates>(random_int(random, 0, 4))};
  const std::vector<std::int64_t> dims = {random_int(random, 1, 2), random_int(random, 1, 3), random_int(random, 1, 20),
                                          random_int(random, 1, 40)};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t size = i < 2 ? dims[i] : random_int(random, (dims[i] + 1) / 2, 6 * dims[i]);
    p = with_sizes(p, {{static_cast<std::int32_t>(size), static_cast<float>(size) / static_cast<float>(dims[i])}});
  }
  return make_case(kResize, p, {random_tensor(ElementType::kF32, dims, random)});
}

TEST(Resize, PlanesMatchReference) {
  expect_variants_match_reference(plane_case, {.cases = 150, .must_cover = {"any_rows__simd"}});
}

TEST(Resize, PartsHaveTheBitsOfTheWhole) {
  int parts = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::int64_t rows = random_int(random, 2, 30);
    const auto out = static_cast<std::int32_t>(random_int(random, 1, 40));
    const std::int32_t columns = seed % 5 == 0 ? 8 : 19;
    ResizeParams p{.mode = static_cast<ResizeMode>(seed % 3),
                   .coordinates = seed % 2 == 0 ? ResizeCoordinates::kHalfPixel : ResizeCoordinates::kAsymmetric,
                   .nearest = static_cast<ResizeNearest>(seed % 4),
                   .sizes = {2, {out, columns}},
                   .exclude_outside = static_cast<std::int32_t>(seed / 3 % 2)};
    p.scales[0] = static_cast<float>(out) / static_cast<float>(rows);
    p.scales[1] = static_cast<float>(columns) / 8.0F;
    const TestTensor x = random_tensor(ElementType::kF32, {rows, 8}, random);
    const std::vector<float> numbers = x.values<float>();
    const auto first = static_cast<std::int32_t>(random_int(random, 0, out - 1));
    const std::int64_t last = random_int(random, first, out - 1);
    // All that any of these rows is sampled from, and a row more.
    std::int64_t low = rows;
    std::int64_t high = 0;
    for (std::int64_t row = first; row <= last; ++row) {
      const resize::Taps taps = resize::taps_at(p, x.desc(), 0, static_cast<std::int32_t>(row));
      for (int t = 0; t < taps.count; ++t) {
        low = std::min<std::int64_t>(low, taps.index[t]);
        high = std::max<std::int64_t>(high, taps.index[t]);
      }
    }
    high = std::min(high + 1, rows - 1);
    ResizeParams part = p;
    part.sizes.v[0] = static_cast<std::int32_t>(last - first + 1);
    part.first_output = {2, {first, 0}};
    part.first_input = {2, {static_cast<std::int32_t>(low), 0}};
    const OpCase whole = make_case(kResize, p, {x});
    const OpCase some = make_case(kResize, part,
                                  {testing::tensor_of<float>({high - low + 1, 8}, {numbers.begin() + low * 8,
                                                                                   numbers.begin() + (high + 1) * 8})});
    for (const KernelVariant& variant : kResize.variants) {
      if (!testing::variant_supports(whole, variant)) continue;
      const std::vector<float> all = testing::run_variant(whole, variant).outputs[0].values<float>();
      const testing::Outcome y = testing::run_variant(some, variant);
      ASSERT_TRUE(y.status.ok()) << y.status.message;
      EXPECT_EQ(y.outputs[0].values<float>(),
                std::vector<float>(all.begin() + first * columns, all.begin() + (last + 1) * columns))
          << variant.name;
      ++parts;
    }
  }
  EXPECT_GT(parts, 40);
}

TEST(Resize, RefusesPartsByCoordinatesThatDependOnSizes) {
  ResizeParams p{.sizes = {1, {2}}, .first_output = {1, {1}}};
  std::vector<TensorDesc> outputs;
  const auto infer = [&] {
    return testing::infer_case(make_case(kResize, p, {testing::tensor_of<float>({3}, {1, 2, 3})}), &outputs);
  };
  EXPECT_TRUE(infer().ok());
  p.coordinates = ResizeCoordinates::kAlignCorners;
  EXPECT_FALSE(infer().ok());
  p.coordinates = ResizeCoordinates::kAsymmetric;
  p.first_output = {2, {1, 0}};
  EXPECT_FALSE(infer().ok());
}

}  // namespace
}  // namespace bantam::ops
