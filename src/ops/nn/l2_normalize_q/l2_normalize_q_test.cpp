#include "ops/nn/l2_normalize_q/l2_normalize_q.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

TEST(L2NormalizeQ, DividesRowsByTheirLength) {
  Random random(5);
  const TestTensor x = random_tensor(ElementType::kI8, {6, 20}, random, -128, 127);
  const auto y = run_reference(make_case(kL2NormalizeQ, L2NormalizeQParams{-3}, {x})).outputs[0].values<std::int8_t>();
  const auto stored = x.values<std::int8_t>();
  for (std::size_t row = 0; row < 6; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < 20; ++i) sum += std::pow(stored[20 * row + i] + 3, 2);
    for (std::size_t i = 0; i < 20; ++i)
      EXPECT_NEAR(y[20 * row + i], std::min(128 * (stored[20 * row + i] + 3) / std::sqrt(sum), 127.0), 0.6);
  }
}

TEST(L2NormalizeQ, RowsOfZerosAndOfOneNumberWork) {
  const auto y =
      run_reference(make_case(kL2NormalizeQ, L2NormalizeQParams{7}, {tensor_of<std::int8_t>({3, 1}, {7, 8, -50})}));
  EXPECT_EQ(y.outputs[0].values<std::int8_t>(), (std::vector<std::int8_t>{0, 127, -128}));
}

TEST(L2NormalizeQ, RefusesLongRowsAndWrongZeroPoints) {
  const auto code = [](std::int64_t size, std::int32_t zero_point) {
    std::vector<TensorDesc> outputs;
    return infer_case(make_case(kL2NormalizeQ, L2NormalizeQParams{zero_point},
                                {TestTensor(dense_desc(ElementType::kI8, {size}))}),
                      &outputs)
        .code;
  };
  EXPECT_EQ(code(32767, 0), StatusCode::kOk);
  EXPECT_EQ(code(32768, 0), StatusCode::kUnsupported);
  EXPECT_EQ(code(4, 128), StatusCode::kInvalidModel);
}

TEST(L2NormalizeQ, RunsInPlace) {
  expect_variants_match_reference(
      [](Random& random) {
        return make_case(kL2NormalizeQ, L2NormalizeQParams{static_cast<std::int32_t>(random_int(random, -128, 127))},
                         {random_tensor(ElementType::kI8, random_dims(random, 2, 0, 9), random, -128, 127)});
      },
      {.cases = 20});
}

}  // namespace
}  // namespace bantam::ops
