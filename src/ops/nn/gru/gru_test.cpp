#include "ops/nn/gru/gru.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/narrowing.h"
#include "ops/testing/harness.h"
#include "ops/testing/rnn_operands.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TEST(Gru, GivesTheStandardsExample) {
  // ONNX test_gru_with_initial_bias.
  std::vector<float> bias(18, 0.0F);
  std::fill(bias.begin(), bias.begin() + 9, 0.1F);
  const OpCase op_case =
      make_case(kGru, GruParams{},
                {tensor_of<float>({1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), constant(filled({1, 9, 3}, 0.1F)),
                 constant(filled({1, 9, 3}, 0.1F)), constant(tensor_of<float>({1, 18}, bias))});
  for (const KernelVariant& variant : kGru.variants)
    if (find_narrowing(kGru, variant) == nullptr)
      expect_near(run_variant(op_case, variant).outputs[1].values<float>(),
                  {0.20053662F, 0.20053662F, 0.20053662F, 0.15482338F, 0.15482338F, 0.15482338F, 0.07484276F,
                   0.07484276F, 0.07484276F});
}

/// Values (i % modulus - offset) / scale with gate blocks update, reset, hidden, from a layout reset, update, hidden.
std::vector<float> reordered_gru(std::size_t columns, int modulus, int offset, float scale) {
  constexpr std::size_t kHidden = 2;
  constexpr std::size_t kSource[] = {1, 0, 2};
  std::vector<float> result;
  for (const std::size_t gate : kSource)
    for (std::size_t i = 0; i < kHidden * columns; ++i)
      result.push_back(static_cast<float>(static_cast<int>(gate * kHidden * columns + i) % modulus - offset) / scale);
  return result;
}

TEST(Gru, SequenceAgreesWithAnotherImplementation) {
  // PyTorch's GRU (gates reset, update, new; linear before reset) with the same weights.
  std::vector<float> bias = reordered_gru(1, 3, 1, 8);
  const std::vector<float> state_bias = reordered_gru(1, 4, 1, 8);
  bias.insert(bias.end(), state_bias.begin(), state_bias.end());
  const OpCase op_case = make_case(
      kGru, GruParams{.linear_before_reset = 1},
      {tensor_of<float>({3, 1, 2}, {1, -0.5F, 0.25F, 2, -1, 0.75F}),
       constant(tensor_of<float>({1, 6, 2}, reordered_gru(2, 7, 3, 4))),
       constant(tensor_of<float>({1, 6, 2}, reordered_gru(2, 5, 2, 4))), constant(tensor_of<float>({1, 12}, bias))});
  for (const KernelVariant& variant : kGru.variants)
    if (find_narrowing(kGru, variant) == nullptr)
      expect_near(run_variant(op_case, variant).outputs[0].values<float>(),
                  {-0.17197561F, 0.00000000F, -0.26407236F, 0.44203639F, 0.02340430F, 0.34560341F});
}

OpCase random_gru_case(Random& random, RnnSizes (*sizes)(Random&)) {
  GruParams params{.direction = static_cast<RnnDirection>(random_int(random, 0, 2)),
                   .clip = random_int(random, 0, 2) == 0 ? 0.7F : 0.0F,
                   .linear_before_reset = static_cast<std::int32_t>(random_int(random, 0, 1))};
  // Bounded ones: others let the state grow, and with it the rounding.
  constexpr RnnFunction kBounded[] = {RnnFunction::kHardSigmoid, RnnFunction::kTanh, RnnFunction::kSigmoid};
  if (random_int(random, 0, 2) == 0) {
    for (RnnFunction& function : params.activations.functions) function = kBounded[random_int(random, 0, 2)];
    std::ranges::fill(params.activations.alpha, 0.2F);
    std::ranges::fill(params.activations.beta, 0.5F);
  }
  const std::int64_t d = params.direction == RnnDirection::kBidirectional ? 2 : 1;
  const RnnSizes size = sizes(random);
  return make_case(kGru, params, random_rnn_operands(random, size, d, 3));
}

TEST(Gru, VariantsMatchReference) {
  expect_variants_match_reference([](Random& random) { return random_gru_case(random, random_rnn_sizes); },
                                  {.cases = 60,
                                   .must_cover = {"f32_packed__simd", "f32_packed_f16__simd", "f32_packed_bf16__simd",
                                                  "f32_packed_i8__simd", "f32_packed_i4__simd"}});
}

TEST(Gru, VariantsMatchReferenceWhereThreadsShareTheWork) {
  expect_variants_match_reference([](Random& random) { return random_gru_case(random, random_shared_rnn_sizes); },
                                  {.cases = 20, .must_cover = {"f32_packed__simd", "f32_packed_i8__simd"}});
}

TEST(Gru, RefusesHostileShapesAndParameters) {
  std::vector<TensorDesc> outputs;
  const auto accepted = [&](const GruParams& p, std::vector<Operand> operands) {
    return infer_case(make_case(kGru, p, std::move(operands)), &outputs).ok();
  };
  const TestTensor x = filled({1, 1, 2}, 1);
  const TestTensor w = filled({1, 6, 2}, 1);
  EXPECT_TRUE(accepted({}, {x, w, w}));
  EXPECT_FALSE(accepted({.direction = static_cast<RnnDirection>(-1)}, {x, w, w}));
  EXPECT_FALSE(accepted({.clip = INFINITY}, {x, w, w}));
  EXPECT_FALSE(accepted({.linear_before_reset = 2}, {x, w, w}));
  EXPECT_FALSE(accepted({}, {x, filled({1, 8, 2}, 1), w}));
  EXPECT_FALSE(accepted({}, {x, w, w, filled({1, 6}, 1)}));
  EXPECT_FALSE(accepted({}, {x, w, w, absent(), absent(), filled({1, 1, 3}, 1)}));
}

}  // namespace
}  // namespace bantam::ops
