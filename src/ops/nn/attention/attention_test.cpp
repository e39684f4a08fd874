#include "ops/nn/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TestTensor f32(const std::vector<std::int64_t>& dims, const std::vector<float>& values) {
  return tensor_of<float>(dims, values);
}

std::vector<float> attend(const AttentionParams& params, std::vector<Operand> operands,
                          const KernelVariant& variant = reference_variant(kAttention)) {
  const Outcome y = run_variant(make_case(kAttention, params, std::move(operands)), variant);
  EXPECT_TRUE(y.status.ok()) << y.status.message;
  return y.outputs.empty() ? std::vector<float>() : y.outputs[0].values<float>();
}

/// One head, one query [1], two keys with scores `a` and `b`, values 1 and 10.
std::vector<Operand> two_keys(float a, float b) {
  return {f32({1, 1, 1, 1}, {1}), f32({1, 1, 2, 1}, {a, b}), f32({1, 1, 2, 1}, {1, 10})};
}

/// The weight of the second key decides the result: 1 + 9 w.
void expect_weight(float weight, const AttentionParams& params, std::vector<Operand> operands) {
  for (const KernelVariant& variant : kAttention.variants)
    EXPECT_NEAR(attend(params, operands, variant).at(0), 1 + 9 * weight, 1e-5) << variant.name;
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

TEST(Attention, WeighsValuesByTheSoftmaxOfTheScores) {
  expect_weight(sigmoid(2), {}, two_keys(1, 3));
  expect_weight(sigmoid(1), {.scale = 0.5F}, two_keys(1, 3));
  expect_weight(sigmoid(2 * std::tanh(1.5F) - 2 * std::tanh(0.5F)), {.softcap = 2}, two_keys(1, 3));
}

TEST(Attention, AddsABiasAndReplacesMaskedScores) {
  auto biased = two_keys(1, 3);
  biased.emplace_back(f32({2}, {4, 1}));
  expect_weight(sigmoid(2 - 1.5F), {.bias_scale = 0.5F}, biased);
  auto masked = two_keys(1, 3);
  masked.push_back(absent());
  masked.emplace_back(TestTensor(dense_desc(ElementType::kBool, {1, 1, 1, 2})));
  masked.back().tensor.set_packed({std::byte{1}, std::byte{0}});
  expect_weight(0, {}, masked);
  expect_weight(1, {.mask_keeps = 0}, masked);
  expect_weight(sigmoid(-2), {.masked_value = -1}, masked);
}

TEST(Attention, RowsWithoutScoresAreNanOrZero) {
  auto operands = two_keys(1, 3);
  operands.emplace_back(f32({1}, {-kInfinity}));
  for (const KernelVariant& variant : kAttention.variants) {
    EXPECT_TRUE(std::isnan(attend({}, operands, variant).at(0))) << variant.name;
    EXPECT_EQ(attend({.empty_rows_zero = 1}, operands, variant).at(0), 0) << variant.name;
  }
}

TEST(Attention, QueriesSeeWhatTheirPositionAllows) {
  // Equal scores: the result is the mean of the values in sight.
  const TestTensor q = f32({1, 1, 2, 1}, {0, 0});
  const TestTensor k = f32({1, 1, 4, 1}, {1, 1, 1, 1});
  const TestTensor v = f32({1, 1, 4, 1}, {1, 2, 4, 8});
  const auto expect = [&](const AttentionParams& params, const Operand& length, const std::vector<float>& expected) {
    for (const KernelVariant& variant : kAttention.variants) {
      const auto y = attend(params, {q, k, v, absent(), absent(), length}, variant);
      ASSERT_EQ(y.size(), expected.size());
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_FLOAT_EQ(y[i], expected[i]) << variant.name;
    }
  };
  expect({.right = 0}, absent(), {1, 1.5F});
  expect({.right = 0, .aligned_end = 1}, absent(), {7.0F / 3, 3.75F});
  expect({.left = 0, .right = 1}, absent(), {1.5F, 3});
  expect({.right = 0, .aligned_end = 1}, tensor_of<std::int32_t>({1}, {1}), {0, 1});
}

TEST(Attention, LengthOutsideTheKeysIsAFault) {
  auto operands = two_keys(1, 3);
  operands.push_back(absent());
  operands.push_back(absent());
  for (const std::int32_t length : {-1, 3}) {
    auto with_length = operands;
    with_length.emplace_back(tensor_of<std::int32_t>({1}, {length}));
    for (const KernelVariant& variant : kAttention.variants)
      EXPECT_EQ(run_variant(make_case(kAttention, AttentionParams{}, with_length), variant).status.code,
                StatusCode::kOutOfRange);
  }
}

OpCase random_attention_case(Random& random) {
  const auto flag = [&] { return static_cast<std::int32_t>(random_int(random, 0, 1)); };
  AttentionParams params{
      .scale = 0.3F,
      .softcap = random_int(random, 0, 3) == 0 ? 3.0F : 0.0F,
      .bias_scale = 0.7F,
      .mask_keeps = flag(),
      .empty_rows_zero = flag(),
      .left = random_int(random, 0, 3) == 0 ? static_cast<std::int32_t>(random_int(random, 0, 9)) : -1,
      .right = random_int(random, 0, 2) == 0 ? static_cast<std::int32_t>(random_int(random, 0, 9)) : -1,
      .aligned_end = flag(),
      .q_heads_last = flag(),
      .k_heads_last = flag(),
      .v_heads_last = flag(),
      .y_heads_last = flag()};
  // Without this a row may hold nothing but -inf, whose NaN would hide differences.
  if (params.empty_rows_zero == 0) params.masked_value = -3;
  const std::int64_t b = random_int(random, 1, 2);
  const std::int64_t groups = random_int(random, 1, 2);
  const std::int64_t heads = groups * random_int(random, 1, 2);
  const std::int64_t queries = random_int(random, 0, 3) == 0 ? random_int(random, 90, 400) : random_int(random, 0, 20);
  const std::int64_t keys = random_int(random, 0, 2) == 0 ? random_int(random, 60, 140) : random_int(random, 0, 20);
  const std::int64_t width = random_int(random, 0, 9) == 0 ? random_int(random, 150, 200) : random_int(random, 0, 40);
  const auto operand = [&](std::int64_t h, std::int64_t rows, std::int64_t columns, bool last) {
    return random_tensor(ElementType::kF32, last ? std::vector{b, rows, h, columns} : std::vector{b, h, rows, columns},
                         random, -2, 2);
  };
  const auto maybe = [&](Operand o) { return random_int(random, 0, 1) == 0 ? absent() : std::move(o); };
  const auto one_or = [&](std::int64_t n) { return random_int(random, 0, 1) == 0 ? 1 : n; };
  const std::vector<std::int64_t> scores{one_or(b), one_or(heads), one_or(queries), one_or(keys)};
  return make_case(
      kAttention, params,
      {operand(heads, queries, width, params.q_heads_last != 0), operand(groups, keys, width, params.k_heads_last != 0),
       operand(groups, keys, random_int(random, 1, 40), params.v_heads_last != 0),
       maybe(random_tensor(ElementType::kF32, scores, random, -2, 2)),
       maybe(random_tensor(ElementType::kBool, scores, random, 0, 1)),
       maybe(random_tensor(ElementType::kI32, {b}, random, 0, static_cast<double>(keys)))});
}

TEST(Attention, VariantsMatchReference) {
  expect_variants_match_reference(random_attention_case, {.cases = 150, .must_cover = {"f32_blocks__simd"}});
}

/// Of self-attention with four heads of 64.
std::int64_t scratch_bytes_of(std::int32_t length) {
  const TensorDesc desc = dense_desc(ElementType::kF32, {1, 4, length, 64});
  const AttentionParams params;
  const Tensor tensor{nullptr, &desc};
  const Tensor inputs[] = {tensor, tensor, tensor};
  const Tensor outputs[] = {tensor};
  return footprint(kAttention.variants.front(), {&params, inputs, outputs}, 1).scratch_bytes;
}

TEST(Attention, ScratchDoesNotGrowWithTheProductOfLengths) {
  EXPECT_EQ(scratch_bytes_of(2000), scratch_bytes_of(100000));
  EXPECT_LT(scratch_bytes_of(2000), 192 * 1024);
}

TEST(Attention, ShorterSequencesNeedNoMoreScratch) {
  for (std::int32_t length = 1; length < 1200; ++length)
    EXPECT_LE(scratch_bytes_of(length), scratch_bytes_of(length + 1)) << length;
}

TEST(Attention, RefusesHostileShapesAndParameters) {
  std::vector<TensorDesc> outputs;
  const auto accepted = [&](const AttentionParams& p, std::vector<Operand> operands) {
    return infer_case(make_case(kAttention, p, std::move(operands)), &outputs).ok();
  };
  const auto of = [](const std::vector<std::int64_t>& dims) { return TestTensor(dense_desc(ElementType::kF32, dims)); };
  const TestTensor x = of({2, 4, 3, 8});
  EXPECT_TRUE(accepted({}, {x, of({2, 2, 5, 8}), of({2, 2, 5, 1})}));
  EXPECT_FALSE(accepted({}, {x, of({2, 3, 5, 8}), of({2, 3, 5, 1})}));
  EXPECT_FALSE(accepted({}, {x, of({2, 0, 5, 8}), of({2, 0, 5, 1})}));
  EXPECT_FALSE(accepted({}, {x, of({2, 2, 5, 7}), of({2, 2, 5, 1})}));
  EXPECT_FALSE(accepted({}, {x, of({2, 2, 5, 8}), of({2, 2, 6, 1})}));
  EXPECT_FALSE(accepted({}, {x, of({1, 2, 5, 8}), of({1, 2, 5, 1})}));
  EXPECT_FALSE(accepted({}, {of({4, 3, 8}), of({4, 3, 8}), of({4, 3, 8})}));
  EXPECT_FALSE(accepted({}, {x, x, x, of({5})}));
  EXPECT_FALSE(accepted({}, {x, x, x, of({1, 2, 4, 3, 3})}));
  EXPECT_FALSE(accepted({}, {x, x, x, absent(), of({3})}));
  EXPECT_FALSE(accepted({}, {x, x, x, absent(), absent(), tensor_of<std::int32_t>({1}, {0})}));
  EXPECT_FALSE(accepted({.scale = NAN}, {x, x, x}));
  EXPECT_FALSE(accepted({.softcap = -1}, {x, x, x}));
  EXPECT_FALSE(accepted({.masked_value = NAN}, {x, x, x}));
  EXPECT_FALSE(accepted({.q_heads_last = 2}, {x, x, x}));
}

}  // namespace
}  // namespace bantam::ops
