#include "ops/nn/resize_bilinear_q/resize_bilinear_q.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

std::vector<std::int8_t> row_of(ResizeBilinearQParams params, std::vector<std::int8_t> x) {
  const auto width = static_cast<std::int64_t>(x.size());
  return run_reference(make_case(kResizeBilinearQ, params, {tensor_of({1, 1, width, 1}, x)}))
      .outputs[0]
      .values<std::int8_t>();
}

TEST(ResizeBilinearQ, MixesNeighbours) {
  using I = std::vector<std::int8_t>;
  EXPECT_EQ(row_of({1, 4, 1024, 512, 0}, {0, 10}), (I{0, 5, 10, 10}));
  EXPECT_EQ(row_of({1, 4, 1024, 512, 1}, {0, 10}), (I{0, 3, 8, 10}));
  EXPECT_EQ(row_of({1, 3, 1024, 512, 0}, {-10, -1}), (I{-10, -6, -1})) << "halves are rounded away from zero";
}

/// The scale of a resized axis: that of the sizes, that of the corners where the corners are pixels, or any that stays
/// within the operand.
std::int32_t resize_scale(Random& random, std::int64_t from, std::int64_t to, bool half_pixel) {
  switch (random_int(random, 0, 2)) {
    case 0: return static_cast<std::int32_t>(1024 * from / to);
    case 1: return static_cast<std::int32_t>(half_pixel || to == 1 ? 0 : 1024 * (from - 1) / (to - 1));
    default: return static_cast<std::int32_t>(random_int(random, 0, 1024 * from / to));
  }
}

OpCase resize_case(Random& random) {
  const std::int64_t h = random_int(random, 1, 9), w = random_int(random, 1, 19);
  const std::int64_t height = random_int(random, 1, 20), width = random_int(random, 1, 40);
  const bool half_pixel = random_int(random, 0, 1) == 1;
  const ResizeBilinearQParams p{static_cast<std::int32_t>(height), static_cast<std::int32_t>(width),
                                resize_scale(random, h, height, half_pixel), resize_scale(random, w, width, half_pixel),
                                half_pixel ? 1 : 0};
  const std::int64_t channels = random_int(random, 0, 1) == 0 ? random_int(random, 1, 20) : random_int(random, 21, 150);
  // Few numbers make many halves of either sign.
  const std::int32_t spread = random_int(random, 0, 1) == 0 ? 128 : 2;
  return make_case(
      kResizeBilinearQ, p,
      {random_tensor(ElementType::kI8, {random_int(random, 1, 3), h, w, channels}, random, -spread, spread - 1)});
}

TEST(ResizeBilinearQ, VariantsMatchReference) {
  expect_variants_match_reference(resize_case, {.cases = 200, .must_cover = {"i8__simd"}});
}

TEST(ResizeBilinearQ, RefusesScalesThatLeadOutside) {
  const auto code = [](ResizeBilinearQParams params) {
    std::vector<TensorDesc> outputs;
    return infer_case(make_case(kResizeBilinearQ, params, {TestTensor(dense_desc(ElementType::kI8, {1, 4, 4, 1}))}),
                      &outputs)
        .code;
  };
  EXPECT_EQ(code({4, 4, 1024, 1024, 0}), StatusCode::kOk);
  EXPECT_EQ(code({4, 4, 1400, 1024, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({4, 4, 1024, 0x7fffffff, 1}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({4, 4, -1, 1024, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({-1, 4, 1024, 1024, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({4, 4, 1024, 1024, 2}), StatusCode::kInvalidModel);
}

}  // namespace
}  // namespace bantam::ops
