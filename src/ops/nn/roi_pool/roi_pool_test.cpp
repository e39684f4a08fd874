#include "ops/nn/roi_pool/roi_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

using Floats = std::vector<float>;

/// The image [1, h, w, 1] of 0, 1, 2 ...
TestTensor ramp(std::int64_t h, std::int64_t w) {
  TestTensor x(dense_desc(ElementType::kF32, {1, h, w, 1}));
  Floats values(static_cast<std::size_t>(h * w));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  x.set_values(values);
  return x;
}

OpCase one_region(const RoiPoolParams& p, const TestTensor& x, const Floats& region, std::int64_t image = 0) {
  return make_case(kRoiPool, p, {x, tensor_of<float>({1, 4}, region), tensor_of<std::int64_t>({1}, {image})});
}

Floats pool(const RoiPoolParams& p, const TestTensor& x, const Floats& region) {
  const Outcome y = run_reference(one_region(p, x, region));
  EXPECT_TRUE(y.status.ok()) << y.status.message;
  return y.outputs[0].values<float>();
}

TEST(RoiPool, BinsAverageInterpolatedPoints) {
  // Values grow by 1 per column and 4 per row; without a shift element (0, 0) lies at 0. Bins of 1 x 1 with one point
  // in their middle.
  const RoiPoolParams p{.output_h = 2, .output_w = 2, .samples = 1, .half_pixel = 0};
  EXPECT_EQ(pool(p, ramp(4, 4), {0, 0, 2, 2}), (Floats{2.5F, 3.5F, 6.5F, 7.5F}));
  // Half a pixel earlier, the middle of a bin is the middle of an element.
  const RoiPoolParams shifted{.output_h = 2, .output_w = 2, .samples = 2};
  EXPECT_EQ(pool(shifted, ramp(4, 4), {1, 1, 3, 3}), (Floats{5, 6, 9, 10}));
}

TEST(RoiPool, NumberOfPointsFollowsTheBin) {
  // One bin of 3 x 2 elements: 3 x 2 points at the middles of elements when moved by half a pixel.
  EXPECT_EQ(pool({}, ramp(4, 4), {0, 0, 3, 2}), (Floats{3}));
}

TEST(RoiPool, PointsFarOutsideAreZeroAndNearOnesTakeTheEdge) {
  const RoiPoolParams p{.samples = 1, .half_pixel = 0};
  EXPECT_EQ(pool(p, ramp(2, 2), {-1, -1, 0, 0}), (Floats{0}));      // the point (-0.5, -0.5) takes element (0, 0)
  EXPECT_EQ(pool(p, ramp(2, 2), {1, 1, 2.5F, 2.5F}), (Floats{3}));  // (1.75, 1.75) takes element (1, 1)
  EXPECT_EQ(pool(p, ramp(2, 2), {5, 5, 6, 6}), (Floats{0}));
}

TEST(RoiPool, MaximumIsOfWeightedElements) {
  const RoiPoolParams p{.mode = RoiPoolMode::kMax, .samples = 1, .half_pixel = 0};
  // The point (0.5, 0.5) weighs elements 0, 1, 4, 5 by a quarter each.
  EXPECT_EQ(pool(p, ramp(4, 4), {0, 0, 1, 1}), (Floats{1.25F}));
}

TEST(RoiPool, RoundedRegionsTakeMaximaOfElements) {
  // Corners round to (1, 0) and (3, 2): 3 x 3 elements in overlapping bins of 1.5.
  const RoiPoolParams p{.mode = RoiPoolMode::kRoundedMax, .output_h = 2, .output_w = 2};
  EXPECT_EQ(pool(p, ramp(4, 4), {0.6F, 0.2F, 3.4F, 1.8F}), (Floats{6, 7, 10, 11}));
  EXPECT_EQ(pool(p, ramp(4, 4), {9, 9, 12, 12}), (Floats{0, 0, 0, 0}));
}

TEST(RoiPool, RegionsOfAnySizeTakeBoundedWorkAndGiveTheMean) {
  // A region of 1e9 elements around an image of ones: the bin's mean vanishes, a fault or a hang would not.
  const TestTensor ones = tensor_of<float>({1, 2, 2, 1}, {1, 1, 1, 1});
  EXPECT_NEAR(pool({}, ones, {-5e8F, -5e8F, 5e8F, 5e8F})[0], 0.0F, 1e-6);
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  for (const RoiPoolMode mode : {RoiPoolMode::kAverage, RoiPoolMode::kMax, RoiPoolMode::kRoundedMax})
    for (const float bad : {nan, inf, -inf, 3e38F})
      for (const Floats& region :
           {Floats{bad, 0, 1, 1}, Floats{0, bad, 1, 1}, Floats{0, 0, bad, 1}, Floats{0, 0, 1, bad}})
        EXPECT_TRUE(run_reference(one_region({.mode = mode, .output_h = 3, .output_w = 2}, ones, region)).status.ok());
}

TEST(RoiPool, ImagesOutsideTheBatchAreFaults) {
  EXPECT_EQ(run_reference(one_region({}, ramp(2, 2), {0, 0, 1, 1}, 1)).status.code, StatusCode::kOutOfRange);
  EXPECT_EQ(run_reference(one_region({}, ramp(2, 2), {0, 0, 1, 1}, -1)).status.code, StatusCode::kOutOfRange);
}

TEST(RoiPool, ThreadsGiveTheSame) {
  expect_variants_match_reference([](Random& random) {
    const RoiPoolParams p{.mode = static_cast<RoiPoolMode>(random_int(random, 0, 2)),
                          .output_h = static_cast<std::int32_t>(random_int(random, 1, 4)),
                          .output_w = static_cast<std::int32_t>(random_int(random, 1, 4)),
                          .samples = static_cast<std::int32_t>(random_int(random, 0, 3)),
                          .half_pixel = static_cast<std::int32_t>(random_int(random, 0, 1))};
    return make_case(kRoiPool, p,
                     {random_tensor(ElementType::kF32, {2, 7, 9, 3}, random),
                      random_tensor(ElementType::kF32, {4, 4}, random, -2, 10),
                      random_tensor(ElementType::kI32, {4}, random, 0, 1)});
  });
}

TEST(RoiPool, RefusesWhatDoesNotFit) {
  std::vector<TensorDesc> outputs;
  const auto refused = [&](const RoiPoolParams& p) {
    return !infer_case(one_region(p, ramp(2, 2), {0, 0, 1, 1}), &outputs).ok();
  };
  EXPECT_FALSE(refused({}));
  EXPECT_TRUE(refused({.mode = RoiPoolMode::kCount}));
  EXPECT_TRUE(refused({.output_h = -1}));
  EXPECT_TRUE(refused({.samples = 257}));
  EXPECT_TRUE(refused({.half_pixel = 2}));
  EXPECT_TRUE(refused({.spatial_scale = std::nanf("")}));
}

}  // namespace
}  // namespace bantam::ops
