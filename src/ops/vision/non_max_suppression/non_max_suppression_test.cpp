// The first cases are those of ONNX's own description of the operator.
#include "ops/vision/non_max_suppression/non_max_suppression.h"

#include <gtest/gtest.h>

#include <limits>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

using Rows = std::vector<std::int64_t>;

TestTensor corner_boxes(std::int64_t batches = 1) {
  const std::vector<float> one = {0, 0,  1, 1,  0, 0.1F,  1, 1.1F,  0, -0.1F, 1, 0.9F,
                                  0, 10, 1, 11, 0, 10.1F, 1, 11.1F, 0, 100,   1, 101};
  std::vector<float> all;
  for (std::int64_t b = 0; b < batches; ++b) all.insert(all.end(), one.begin(), one.end());
  return tensor_of<float>({batches, 6, 4}, all);
}

const std::vector<float> kScores = {0.9F, 0.75F, 0.6F, 0.95F, 0.5F, 0.3F};

Outcome suppress(const NonMaxSuppressionParams& params, const TestTensor& boxes, const TestTensor& scores,
                 std::int64_t most, float iou, float score) {
  return run_reference(make_case(kNonMaxSuppression, params,
                                 {boxes, scores, tensor_of<std::int64_t>({1}, {most}), tensor_of<float>({1}, {iou}),
                                  tensor_of<float>({1}, {score})}));
}

/// The rows that are filled; the others must be zero.
Rows selected_rows(const Outcome& y) {
  EXPECT_TRUE(y.status.ok()) << y.status.message;
  Rows rows = y.outputs[0].values<std::int64_t>();
  const auto filled = static_cast<std::size_t>(3 * y.outputs[1].values<std::int64_t>()[0]);
  for (std::size_t i = filled; i < rows.size(); ++i) EXPECT_EQ(rows[i], 0);
  rows.resize(std::min(filled, rows.size()));
  return rows;
}

TEST(NonMaxSuppression, KeepsTheBestOfBoxesThatOverlap) {
  const TestTensor scores = tensor_of<float>({1, 1, 6}, kScores);
  EXPECT_EQ(selected_rows(suppress({0, 6}, corner_boxes(), scores, 3, 0.5F, 0)), (Rows{0, 0, 3, 0, 0, 0, 0, 0, 5}));
  EXPECT_EQ(selected_rows(suppress({0, 6}, corner_boxes(), scores, 30, 0.5F, 0)), (Rows{0, 0, 3, 0, 0, 0, 0, 0, 5}));
  EXPECT_EQ(selected_rows(suppress({0, 6}, corner_boxes(), scores, 2, 0.5F, 0)), (Rows{0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(selected_rows(suppress({0, 6}, corner_boxes(), scores, 3, 0.5F, 0.4F)), (Rows{0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(selected_rows(suppress({0, 6}, corner_boxes(), scores, 3, 0.5F, 0.99F)), Rows{});
}

TEST(NonMaxSuppression, TakesCornersInAnyOrderAndCentres) {
  const TestTensor scores = tensor_of<float>({1, 1, 6}, kScores);
  const TestTensor flipped = tensor_of<float>(
      {1, 6, 4}, {1, 1, 0, 0, 0, 0.1F, 1, 1.1F, 0, 0.9F, 1, -0.1F, 0, 10, 1, 11, 1, 10.1F, 0, 11.1F, 1, 101, 0, 100});
  EXPECT_EQ(selected_rows(suppress({0, 6}, flipped, scores, 3, 0.5F, 0)), (Rows{0, 0, 3, 0, 0, 0, 0, 0, 5}));
  const TestTensor centres = tensor_of<float>({1, 6, 4}, {0.5F, 0.5F,  1, 1, 0.5F, 0.6F,  1, 1, 0.5F, 0.4F,   1, 1,
                                                          0.5F, 10.5F, 1, 1, 0.5F, 10.6F, 1, 1, 0.5F, 100.5F, 1, 1});
  EXPECT_EQ(selected_rows(suppress({1, 6}, centres, scores, 3, 0.5F, 0)), (Rows{0, 0, 3, 0, 0, 0, 0, 0, 5}));
}

TEST(NonMaxSuppression, ListsBatchesAndClassesInTurn) {
  std::vector<float> twice = kScores;
  twice.insert(twice.end(), kScores.begin(), kScores.end());
  EXPECT_EQ(selected_rows(suppress({0, 12}, corner_boxes(), tensor_of<float>({1, 2, 6}, twice), 2, 0.5F, 0)),
            (Rows{0, 0, 3, 0, 0, 0, 0, 1, 3, 0, 1, 0}));
  EXPECT_EQ(selected_rows(suppress({0, 12}, corner_boxes(2), tensor_of<float>({2, 1, 6}, twice), 2, 0.5F, 0)),
            (Rows{0, 0, 3, 0, 0, 0, 1, 0, 3, 1, 0, 0}));
}

TEST(NonMaxSuppression, EqualScoresComeInTheOrderOfTheBoxesAndNanLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const TestTensor boxes = tensor_of<float>({1, 4, 4}, {0, 0, 1, 1, 2, 0, 3, 1, 4, 0, 5, 1, 6, 0, 7, 1});
  const TestTensor scores = tensor_of<float>({1, 1, 4}, {nan, 0.5F, 0.5F, 0.5F});
  const Outcome all = run_reference(make_case(kNonMaxSuppression, NonMaxSuppressionParams{0, 4},
                                              {boxes, scores, tensor_of<std::int64_t>({}, {9}), absent(), absent()}));
  EXPECT_EQ(selected_rows(all), (Rows{0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 0}));
  // A score that is no number exceeds no threshold.
  EXPECT_EQ(selected_rows(suppress({0, 4}, boxes, scores, 9, 0.5F, 0)), (Rows{0, 0, 1, 0, 0, 2, 0, 0, 3}));
}

TEST(NonMaxSuppression, BoxesWithoutAreaOverlapNothing) {
  const TestTensor boxes = tensor_of<float>({1, 3, 4}, {0, 0, 1, 1, 0.5F, 0, 0.5F, 1, 0.5F, 0, 0.5F, 1});
  const TestTensor scores = tensor_of<float>({1, 1, 3}, {0.9F, 0.8F, 0.7F});
  EXPECT_EQ(selected_rows(suppress({0, 3}, boxes, scores, 3, 0, 0)), (Rows{0, 0, 0, 0, 0, 1, 0, 0, 2}));
}

TEST(NonMaxSuppression, NoMostPerClassMeansNone) {
  const Outcome y = run_reference(make_case(kNonMaxSuppression, NonMaxSuppressionParams{0, 2},
                                            {corner_boxes(), tensor_of<float>({1, 1, 6}, kScores)}));
  EXPECT_EQ(selected_rows(y), Rows{});
}

TEST(NonMaxSuppression, MoreThanThereIsRoomForIsAFault) {
  const TestTensor scores = tensor_of<float>({1, 1, 6}, kScores);
  const Outcome y = suppress({0, 2}, corner_boxes(), scores, 3, 0.5F, 0);
  EXPECT_EQ(y.status.code, StatusCode::kOutOfRange);
}

TEST(NonMaxSuppression, RefusesShapesThatDoNotBelongTogether) {
  const TestTensor scores = tensor_of<float>({1, 1, 5}, {0, 0, 0, 0, 0});
  EXPECT_FALSE(suppress({0, 2}, corner_boxes(), scores, 3, 0.5F, 0).status.ok());
  EXPECT_FALSE(suppress({2, 2}, corner_boxes(), tensor_of<float>({1, 1, 6}, kScores), 3, 0.5F, 0).status.ok());
  EXPECT_FALSE(suppress({0, -1}, corner_boxes(), tensor_of<float>({1, 1, 6}, kScores), 3, 0.5F, 0).status.ok());
}

}  // namespace
}  // namespace bantam::ops
