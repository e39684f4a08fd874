#include "ops/nn/log_softmax_q/log_softmax_q.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

/// Of operands with scale 2^-3: a difference d reaches Q5.26 as d * 2^23 = d * 2^30 * 2^(24 - 31), and returns so. The
/// shift leaves room for differences to -124.
constexpr LogSoftmaxQParams kEighths{1 << 30, 24, 1 << 30, -22, -124};

TEST(LogSoftmaxQ, IsTheLogarithmOfSoftmax) {
  Random random(11);
  constexpr std::size_t kSize = 12;
  const TestTensor x = random_tensor(ElementType::kI8, {8, kSize}, random, -80, 40);
  const auto y = run_reference(make_case(kLogSoftmaxQ, kEighths, {x})).outputs[0].values<std::int8_t>();
  const auto stored = x.values<std::int8_t>();
  for (std::size_t row = 0; row < 8; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < kSize; ++i) sum += std::exp(stored[kSize * row + i] / 8.0);
    for (std::size_t i = 0; i < kSize; ++i) {
      const double real = stored[kSize * row + i] / 8.0 - std::log(sum);
      EXPECT_NEAR(y[kSize * row + i], std::max(127 + 16 * real, -128.0), 0.6);
    }
  }
}

TEST(LogSoftmaxQ, RefusesWrongScalings) {
  const auto code = [](auto change) {
    LogSoftmaxQParams p = kEighths;
    change(p);
    std::vector<TensorDesc> outputs;
    return infer_case(make_case(kLogSoftmaxQ, p, {TestTensor(dense_desc(ElementType::kI8, {3}))}), &outputs).code;
  };
  EXPECT_EQ(code([](auto&) {}), StatusCode::kOk);
  EXPECT_EQ(code([](auto& p) { p.input_left_shift = 31; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](auto& p) { p.reverse_shift = -32; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](auto& p) { p.input_multiplier = -1; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](auto& p) { p.diff_min = 1; }), StatusCode::kInvalidModel);
}

TEST(LogSoftmaxQ, RunsInPlace) {
  expect_variants_match_reference(
      [](Random& random) {
        return make_case(kLogSoftmaxQ, kEighths,
                         {random_tensor(ElementType::kI8, random_dims(random, 2, 0, 9), random, -128, 127)});
      },
      {.cases = 20});
}

}  // namespace
}  // namespace bantam::ops
