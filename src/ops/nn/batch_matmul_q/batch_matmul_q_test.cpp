#include "ops/nn/batch_matmul_q/batch_matmul_q.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

// A multiplier of 2^30 with shift 1 is 1, with shift 0 a half.
TEST(BatchMatmulQ, MultipliesWithZeroPoints) {
  const BatchMatmulQParams params{0, 0, 1, -1, 5, 1 << 30, 1};
  const auto y = run_reference(
      make_case(kBatchMatmulQ, params,
                {tensor_of<std::int8_t>({2, 2}, {1, 2, 3, 4}), tensor_of<std::int8_t>({2, 2}, {0, 1, 2, 3})}));
  // a - 1 = [0 1; 2 3], b + 1 = [1 2; 3 4].
  EXPECT_EQ(y.outputs[0].values<std::int8_t>(), (std::vector<std::int8_t>{3 + 5, 4 + 5, 11 + 5, 16 + 5}));
}

TEST(BatchMatmulQ, TransposesAndBroadcasts) {
  const BatchMatmulQParams params{1, 1, 0, 0, 0, 1 << 30, 0};
  const auto y = run_reference(make_case(
      kBatchMatmulQ, params,
      {tensor_of<std::int16_t>({2, 2, 1}, {2, 4, 20, 40}), tensor_of<std::int16_t>({1, 3, 2}, {1, 0, 0, 1, 1, 1})}));
  EXPECT_EQ(y.outputs[0].values<std::int16_t>(), (std::vector<std::int16_t>{1, 2, 3, 10, 20, 30}));
}

TEST(BatchMatmulQ, VariantsMatchReferenceExactly) {
  expect_variants_match_reference(
      [](Random& random) {
        const auto number = [&](std::int64_t low, std::int64_t high) {
          return static_cast<std::int32_t>(random_int(random, low, high));
        };
        const BatchMatmulQParams p{.transpose_a = number(0, 1),
                                   .transpose_b = number(0, 1),
                                   .a_zero_point = number(-128, 127),
                                   .b_zero_point = number(0, 3) == 0 ? 0 : number(-128, 127),
                                   .output_zero_point = number(-128, 127),
                                   .multiplier = number(0x40000000, 0x7fffffff),
                                   .shift = number(-14, 2)};
        const std::int64_t m = number(1, 70), k = number(1, 90), n = number(1, 70);
        const std::int64_t batch = number(1, 3);
        const auto matrix = [&](std::int64_t rows, std::int64_t columns, std::int32_t transposed) {
          if (transposed != 0) std::swap(rows, columns);
          const std::int64_t items = number(0, 2) == 0 ? 1 : batch;
          return random_tensor(ElementType::kI8, {items, rows, columns}, random, -128, 127);
        };
        return make_case(kBatchMatmulQ, p, {matrix(m, k, p.transpose_a), matrix(k, n, p.transpose_b)});
      },
      {.cases = 100, .must_cover = {"i8_packed__simd"}});
}

TEST(BatchMatmulQ, RefusesWhatDoesNotFit) {
  const auto code = [](ElementType type, std::vector<std::int64_t> b, BatchMatmulQParams params) {
    std::vector<TensorDesc> outputs;
    return infer_case(make_case(kBatchMatmulQ, params,
                                {TestTensor(dense_desc(type, {2, 3, 4})), TestTensor(dense_desc(type, b))}),
                      &outputs)
        .code;
  };
  const BatchMatmulQParams plain{0, 0, 0, 0, 0, 1, 0};
  EXPECT_EQ(code(ElementType::kI8, {4, 5}, plain), StatusCode::kOk);
  EXPECT_EQ(code(ElementType::kI8, {5, 4}, plain), StatusCode::kInvalidModel);
  EXPECT_EQ(code(ElementType::kI8, {3, 4, 5}, plain), StatusCode::kInvalidModel);
  EXPECT_EQ(code(ElementType::kI8, {4}, plain), StatusCode::kInvalidModel);
  EXPECT_EQ(code(ElementType::kF32, {4, 5}, plain), StatusCode::kUnsupported);
  EXPECT_EQ(code(ElementType::kI8, {4, 5}, {0, 0, 128, 0, 0, 1, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code(ElementType::kI16, {4, 5}, {0, 0, 1, 0, 0, 1, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code(ElementType::kI16, {4, 5}, {0, 0, 0, 0, 0, 1, 15}), StatusCode::kInvalidModel);
}

}  // namespace
}  // namespace bantam::ops
