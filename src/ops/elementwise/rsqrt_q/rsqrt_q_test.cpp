#include "ops/elementwise/rsqrt_q/rsqrt_q.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

// Scale 1 of operand and result scale 1/64: a factor of 64 is 2^30 * 2^(7 - 30).
constexpr RsqrtQParams kSixtyFourths{-128, -10, 1 << 30, 7};

TEST(RsqrtQ, InvertsTheRoot) {
  std::vector<std::int8_t> x;
  for (int i = -128; i < 128; ++i) x.push_back(static_cast<std::int8_t>(i));
  const auto y =
      run_reference(make_case(kRsqrtQ, kSixtyFourths, {tensor_of({256}, x)})).outputs[0].values<std::int8_t>();
  EXPECT_EQ(y[0], 127) << "of zero";
  for (int i = 1; i < 256; ++i) EXPECT_NEAR(y[static_cast<std::size_t>(i)], 64 / std::sqrt(i) - 10, 0.6) << i;
}

TEST(RsqrtQ, ReportsNumbersBelowZero) {
  const auto outcome =
      run_reference(make_case(kRsqrtQ, RsqrtQParams{0, 0, 1 << 30, 1}, {tensor_of<std::int16_t>({2}, {4, -1})}));
  EXPECT_EQ(outcome.status.code, StatusCode::kOutOfRange);
}

TEST(RsqrtQ, RefusesWrongRescalings) {
  const auto code = [](RsqrtQParams p) {
    std::vector<TensorDesc> outputs;
    return infer_case(make_case(kRsqrtQ, p, {TestTensor(dense_desc(ElementType::kI8, {3}))}), &outputs).code;
  };
  EXPECT_EQ(code(kSixtyFourths), StatusCode::kOk);
  EXPECT_EQ(code({-129, 0, 1, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({0, 128, 1, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({0, 0, -1, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({0, 0, 1, -12}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({0, 0, 1, 31}), StatusCode::kInvalidModel);
}

TEST(RsqrtQ, RunsInPlace) {
  expect_variants_match_reference(
      [](Random& random) {
        return make_case(kRsqrtQ, kSixtyFourths,
                         {random_tensor(ElementType::kI8, random_dims(random, 2, 0, 9), random, -128, 127)});
      },
      {.cases = 20});
}

}  // namespace
}  // namespace bantam::ops
