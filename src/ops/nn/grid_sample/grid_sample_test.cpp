#include "ops/nn/grid_sample/grid_sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

using Mode = GridSampleMode;
using Padding = GridSamplePadding;
using Floats = std::vector<float>;

Floats sample(const GridSampleParams& p, const TestTensor& x, const TestTensor& grid) {
  const Outcome y = run_reference(make_case(kGridSample, p, {x, grid}));
  EXPECT_TRUE(y.status.ok()) << y.status.message;
  return y.outputs[0].values<float>();
}

void expect_samples(const Floats& actual, const Floats& expected, const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-5) << what << ' ' << i;
}

TEST(GridSample, AgreesWithPyTorchOnTwoAxes) {
  // torch.nn.functional.grid_sample 1.13 on the image 1..6; the last points lie outside.
  const TestTensor x = tensor_of<float>({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const TestTensor grid =
      tensor_of<float>({1, 1, 5, 2}, {-0.9F, -0.4F, 0.3F, 0.2F, 1.4F, -0.7F, -2.3F, 1.9F, 0.0F, 1.1F});
  const auto at = [&](Mode mode, Padding padding, std::int32_t align) {
    return sample({mode, padding, align}, x, grid);
  };
  expect_samples(at(Mode::kLinear, Padding::kZeros, 0), {0.845F, 4.55F, 0, 0, 2}, "linear zeros");
  expect_samples(at(Mode::kLinear, Padding::kZeros, 1), {2, 4.1F, 2.07F, 0, 4.75F}, "linear zeros aligned");
  expect_samples(at(Mode::kLinear, Padding::kBorder, 0), {1.3F, 4.55F, 3, 4, 5}, "linear border");
  expect_samples(at(Mode::kLinear, Padding::kReflection, 0), {1.3F, 4.55F, 2.9F, 4.25F, 5}, "linear reflection");
  expect_samples(at(Mode::kLinear, Padding::kReflection, 1), {2, 4.1F, 3.05F, 3.95F, 4.85F},
                 "linear reflection aligned");
  expect_samples(at(Mode::kNearest, Padding::kZeros, 0), {1, 5, 0, 0, 0}, "nearest zeros");
  expect_samples(at(Mode::kNearest, Padding::kBorder, 0), {1, 5, 3, 4, 5}, "nearest border");
  expect_samples(at(Mode::kNearest, Padding::kReflection, 0), {1, 5, 3, 5, 5}, "nearest reflection");
  expect_samples(at(Mode::kCubic, Padding::kZeros, 0), {0.7713F, 5.939F, -0.13268F, 0, 2.156F}, "cubic zeros");
  expect_samples(at(Mode::kCubic, Padding::kZeros, 1), {2.35313F, 5.24864F, 2.39066F, -0.27905F, 4.90497F},
                 "cubic zeros aligned");
  expect_samples(at(Mode::kCubic, Padding::kBorder, 0), {1.1351F, 4.70891F, 2.712F, 4, 5.216F}, "cubic border");
  expect_samples(at(Mode::kCubic, Padding::kReflection, 0), {1.07538F, 4.70891F, 2.56475F, 4.38191F, 5.54F},
                 "cubic reflection");
}

TEST(GridSample, AgreesWithPyTorchOnThreeAxes) {
  const TestTensor x = tensor_of<float>({1, 2, 2, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  const TestTensor grid = tensor_of<float>({1, 1, 1, 2, 3}, {0.1F, -0.2F, 0.4F, 0.9F, 0.9F, -1.2F});
  expect_samples(sample({Mode::kLinear, Padding::kZeros, 0}, x, grid), {5.8F, 0.432F}, "zeros");
  expect_samples(sample({Mode::kLinear, Padding::kBorder, 0}, x, grid), {5.8F, 4}, "border");
}

TEST(GridSample, ImagesOfABatchHaveTheirOwnGrids) {
  const TestTensor x = tensor_of<float>({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const TestTensor grid = tensor_of<float>({2, 1, 1, 2}, {-0.5F, 0, 0.5F, 0});
  EXPECT_EQ(sample({}, x, grid), (Floats{1, 2, 7, 8}));
}

TEST(GridSample, CoordinatesOfAnyKindSampleInside) {
  const TestTensor x = tensor_of<float>({1, 1, 3, 1}, {1, 2, 3});
  for (int mode = 0; mode < 3; ++mode)
    for (int padding = 0; padding < 3; ++padding)
      for (std::int32_t align = 0; align < 2; ++align)
        for (const float at : {std::nanf(""), std::numeric_limits<float>::infinity(), -3e38F, 3e38F, 1e9F}) {
          const Floats y = sample({static_cast<Mode>(mode), static_cast<Padding>(padding), align}, x,
                                  tensor_of<float>({1, 1, 1, 2}, {at, 0}));
          EXPECT_TRUE(y[0] >= 0 && y[0] <= 3.5F) << mode << ' ' << padding << ' ' << align << ' ' << at << ' ' << y[0];
        }
}

/// Coordinates around and far from the image, some of them no numbers.
TestTensor random_grid(const std::vector<std::int64_t>& dims, Random& random) {
  Floats coordinates = random_tensor(ElementType::kF32, dims, random, -2, 2).values<float>();
  constexpr float kOdd[] = {
      std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -3e38F, -1.0F, 1.0F, 1e9F};
  for (float& coordinate : coordinates)
    if (random_int(random, 0, 15) == 0) coordinate = kOdd[random_int(random, 0, std::size(kOdd) - 1)];
  return tensor_of<float>(dims, coordinates);
}

TEST(GridSample, VariantsMatchReference) {
  expect_variants_match_reference([](Random& random) {
    const GridSampleParams p{static_cast<Mode>(random_int(random, 0, 2)),
                             static_cast<Padding>(random_int(random, 0, 2)),
                             static_cast<std::int32_t>(random_int(random, 0, 1))};
    const std::int64_t axes = random_int(random, 1, 3);
    std::vector<std::int64_t> image{2};
    std::vector<std::int64_t> grid{2};
    for (std::int64_t i = 0; i < axes; ++i) {
      image.push_back(random_int(random, 1, 5));
      grid.push_back(random_int(random, 0, 6));
    }
    image.push_back(random_int(random, 0, 40));
    grid.push_back(axes);
    return make_case(kGridSample, p, {random_tensor(ElementType::kF32, image, random), random_grid(grid, random)});
  });
}

TEST(GridSample, RefusesWhatDoesNotFit) {
  std::vector<TensorDesc> outputs;
  const auto refused = [&](const GridSampleParams& p, const std::vector<std::int64_t>& image,
                           const std::vector<std::int64_t>& grid) {
    return !infer_case(make_case(kGridSample, p,
                                 {TestTensor(dense_desc(ElementType::kF32, image)),
                                  TestTensor(dense_desc(ElementType::kF32, grid))}),
                       &outputs)
                .ok();
  };
  EXPECT_FALSE(refused({}, {1, 2, 2, 1}, {1, 3, 3, 2}));
  EXPECT_TRUE(refused({}, {1, 2, 2, 1}, {1, 3, 3, 3}));
  EXPECT_TRUE(refused({}, {1, 2, 2, 1}, {2, 3, 3, 2}));
  EXPECT_TRUE(refused({}, {1, 2, 2, 1}, {1, 3, 2}));
  EXPECT_TRUE(refused({}, {1, 0, 2, 1}, {1, 3, 3, 2}));
  EXPECT_TRUE(refused({}, {1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 4}));
  EXPECT_TRUE(refused({Mode::kCount, Padding::kZeros, 0}, {1, 2, 2, 1}, {1, 3, 3, 2}));
  EXPECT_TRUE(refused({Mode::kLinear, Padding::kZeros, 2}, {1, 2, 2, 1}, {1, 3, 3, 2}));
}

}  // namespace
}  // namespace bantam::ops
