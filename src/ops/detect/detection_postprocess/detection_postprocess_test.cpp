#include "ops/detect/detection_postprocess/detection_postprocess.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

/// Six boxes in three pairs that overlap, two classes behind a background: the example of TFLite's own test, whose
/// results are those below.
OpCase six_boxes(DetectionPostprocessParams params) {
  params.classes = 2;
  params.scale_y = params.scale_x = 10;
  params.scale_h = params.scale_w = 5;
  return make_case(
      kDetectionPostprocess, params,
      {tensor_of<float>({1, 6, 4}, {0, 0, 0, 0, 0, 1, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}),
       tensor_of<float>({1, 6, 3}, {0, .9F, .8F, 0, .75F, .72F, 0, .6F, .5F, 0, .93F, .95F, 0, .5F, .4F, 0, .3F, .2F}),
       constant(tensor_of<float>({6, 4}, {.5F, .5F,   1, 1, .5F, .5F,   1, 1, .5F, .5F,    1, 1,
                                          .5F, 10.5F, 1, 1, .5F, 10.5F, 1, 1, .5F, 100.5F, 1, 1}))});
}

std::vector<float> floats(const Outcome& outcome, std::size_t output) {
  return outcome.outputs[output].values<float>();
}

void expect_floats(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4F) << i;
}

TEST(DetectionPostprocess, KeepsTheBestOfOverlappingBoxes) {
  const auto y =
      run_reference(six_boxes({.results = 3, .max_detections = 3, .score_threshold = 0, .overlap_threshold = 0.5F}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  expect_floats(floats(y, 0), {0, 10, 1, 11, 0, 0, 1, 1, 0, 100, 1, 101});
  expect_floats(floats(y, 1), {1, 0, 0});
  expect_floats(floats(y, 2), {0.95F, 0.9F, 0.3F});
  expect_floats(floats(y, 3), {3});
}

TEST(DetectionPostprocess, RegularSuppressionTakesEachClassOnItsOwn) {
  const auto y = run_reference(six_boxes({.results = 3,
                                          .max_detections = 3,
                                          .detections_per_class = 1,
                                          .regular = 1,
                                          .score_threshold = 0,
                                          .overlap_threshold = 0.5F}));
  expect_floats(floats(y, 0), {0, 10, 1, 11, 0, 10, 1, 11, 0, 0, 0, 0});
  expect_floats(floats(y, 1), {1, 0, 0});
  expect_floats(floats(y, 2), {0.95F, 0.93F, 0});
  expect_floats(floats(y, 3), {2});
}

TEST(DetectionPostprocess, DropsScoresBelowTheThreshold) {
  const auto y = run_reference(
      six_boxes({.results = 3, .max_detections = 3, .score_threshold = 0.94F, .overlap_threshold = 0.5F}));
  expect_floats(floats(y, 2), {0.95F, 0, 0});
  expect_floats(floats(y, 3), {1});
}

TEST(DetectionPostprocess, RefusesWrongCountsAndThresholds) {
  const auto code = [](auto change) {
    DetectionPostprocessParams p{.results = 3, .max_detections = 3};
    change(p);
    return run_reference(six_boxes(p)).status.code;
  };
  EXPECT_EQ(code([](auto&) {}), StatusCode::kOk);
  EXPECT_EQ(code([](auto& p) { p.max_detections = 4; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](auto& p) { p.results = 0x7fffffff; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](auto& p) { p.classes_per_detection = 0; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](auto& p) { p.overlap_threshold = 0; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](auto& p) { p.overlap_threshold = NAN; }), StatusCode::kInvalidModel);
}

TEST(DetectionPostprocess, AnyNumbersStayInsideMemory) {
  expect_variants_match_reference([](Random& random) {
    const std::int64_t boxes = random_int(random, 0, 12);
    DetectionPostprocessParams p;
    p.classes = static_cast<std::int32_t>(random_int(random, 1, 4));
    p.classes_per_detection = static_cast<std::int32_t>(random_int(random, 1, 5));
    p.max_detections = static_cast<std::int32_t>(random_int(random, 0, 6));
    p.results = p.max_detections + static_cast<std::int32_t>(random_int(random, 0, 5));
    p.detections_per_class = static_cast<std::int32_t>(random_int(random, 1, 9));
    p.regular = static_cast<std::int32_t>(random() % 2);
    TestTensor scores(dense_desc(ElementType::kF32, {1, boxes, p.classes + random_int(random, 0, 1)}));
    fill_garbage(scores, random);
    TestTensor encodings(dense_desc(ElementType::kF32, {1, boxes, random_int(random, 4, 6)}));
    fill_garbage(encodings, random);
    return make_case(kDetectionPostprocess, p,
                     {encodings, scores, random_tensor(ElementType::kF32, {boxes, 4}, random, -1, 1)});
  });
}

}  // namespace
}  // namespace bantam::ops
