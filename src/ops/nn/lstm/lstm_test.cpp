#include "ops/nn/lstm/lstm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/narrowing.h"
#include "ops/testing/harness.h"
#include "ops/testing/rnn_operands.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TestTensor counting(const std::vector<std::int64_t>& dims) {
  TestTensor tensor(dense_desc(ElementType::kF32, dims));
  std::vector<float> values(static_cast<std::size_t>(tensor.desc().elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  tensor.set_values(values);
  return tensor;
}

/// Runs every variant that supports the case and expects y_h.
void expect_state(const OpCase& op_case, const std::vector<float>& y_h) {
  for (const KernelVariant& variant : kLstm.variants) {
    if (find_narrowing(kLstm, variant) != nullptr) continue;
    ASSERT_TRUE(variant_supports(op_case, variant)) << variant.name;
    const Outcome y = run_variant(op_case, variant);
    ASSERT_TRUE(y.status.ok()) << y.status.message;
    expect_near(y.outputs[1].values<float>(), y_h);
  }
}

TEST(Lstm, GivesTheStandardsExamples) {
  // ONNX test_lstm_defaults, test_lstm_with_initial_bias, test_lstm_with_peepholes.
  expect_state(make_case(kLstm, LstmParams{},
                         {counting({1, 3, 2}), constant(filled({1, 12, 2}, 0.1F)), constant(filled({1, 12, 3}, 0.1F))}),
               {0.0952412F, 0.0952412F, 0.0952412F, 0.25606447F, 0.25606447F, 0.25606447F, 0.40323776F, 0.40323776F,
                0.40323776F});
  std::vector<float> bias(32, 0.0F);
  std::fill(bias.begin(), bias.begin() + 16, 0.1F);
  expect_state(make_case(kLstm, LstmParams{},
                         {counting({1, 3, 3}), constant(filled({1, 16, 3}, 0.1F)), constant(filled({1, 16, 4}, 0.1F)),
                          constant(tensor_of<float>({1, 32}, bias))}),
               {0.25606447F, 0.25606447F, 0.25606447F, 0.25606447F, 0.5367278F, 0.5367278F, 0.5367278F, 0.5367278F,
                0.6672132F, 0.6672132F, 0.6672132F, 0.6672132F});
  expect_state(make_case(kLstm, LstmParams{},
                         {counting({1, 2, 4}), constant(filled({1, 12, 4}, 0.1F)), constant(filled({1, 12, 3}, 0.1F)),
                          constant(filled({1, 24}, 0)), tensor_of<std::int32_t>({2}, {1, 1}), filled({1, 2, 3}, 0),
                          filled({1, 2, 3}, 0), filled({1, 9}, 0.1F)}),
               {0.3750691F, 0.3750691F, 0.3750691F, 0.6801309F, 0.6801309F, 0.6801309F});
}

/// Values (i % modulus - offset) / scale with gate blocks in this order, from a layout input, forget, cell, output.
std::vector<float> reordered_lstm(std::size_t columns, int modulus, int offset, float scale) {
  constexpr std::size_t kHidden = 2;
  constexpr std::size_t kSource[] = {0, 3, 1, 2};
  std::vector<float> result;
  for (const std::size_t gate : kSource)
    for (std::size_t i = 0; i < kHidden * columns; ++i)
      result.push_back(static_cast<float>(static_cast<int>(gate * kHidden * columns + i) % modulus - offset) / scale);
  return result;
}

TEST(Lstm, SequenceAgreesWithAnotherImplementation) {
  // PyTorch's LSTM (gates input, forget, cell, output) with the same weights.
  std::vector<float> bias = reordered_lstm(1, 3, 1, 8);
  const std::vector<float> state_bias = reordered_lstm(1, 4, 1, 8);
  bias.insert(bias.end(), state_bias.begin(), state_bias.end());
  const OpCase op_case = make_case(
      kLstm, LstmParams{},
      {tensor_of<float>({3, 1, 2}, {1, -0.5F, 0.25F, 2, -1, 0.75F}),
       constant(tensor_of<float>({1, 8, 2}, reordered_lstm(2, 7, 3, 4))),
       constant(tensor_of<float>({1, 8, 2}, reordered_lstm(2, 5, 2, 4))), constant(tensor_of<float>({1, 16}, bias))});
  for (const KernelVariant& variant : kLstm.variants) {
    if (find_narrowing(kLstm, variant) != nullptr) continue;
    const Outcome y = run_variant(op_case, variant);
    expect_near(y.outputs[0].values<float>(),
                {-0.07818353F, 0.00000000F, -0.19984441F, 0.07502867F, -0.02123544F, 0.16941887F});
    expect_near(y.outputs[2].values<float>(), {-0.04083627F, 0.28060246F});
  }
}

TEST(Lstm, ReverseRunsOverTheValidStepsBackwards) {
  Random random(3);
  const TestTensor w = random_tensor(ElementType::kF32, {1, 12, 2}, random);
  const TestTensor r = random_tensor(ElementType::kF32, {1, 12, 3}, random);
  const TestTensor forward = tensor_of<float>({3, 1, 2}, {1, 2, 3, 4, 5, 6});
  const TestTensor backward = tensor_of<float>({4, 1, 2}, {5, 6, 3, 4, 1, 2, 9, 9});
  const Outcome a = run_reference(make_case(kLstm, LstmParams{}, {forward, w, r}));
  const Outcome b = run_reference(make_case(kLstm, LstmParams{.direction = RnnDirection::kReverse},
                                            {backward, w, r, absent(), tensor_of<std::int32_t>({1}, {3})}));
  EXPECT_EQ(a.outputs[1].values<float>(), b.outputs[1].values<float>());
  const std::vector<float> y = b.outputs[0].values<float>();
  EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 3), a.outputs[1].values<float>());
  EXPECT_EQ(std::vector<float>(y.end() - 3, y.end()), (std::vector<float>{0, 0, 0}));
}

TEST(Lstm, NoStepsKeepTheInitialState) {
  const OpCase op_case =
      make_case(kLstm, LstmParams{},
                {filled({0, 1, 2}, 0), constant(filled({1, 8, 2}, 1)), constant(filled({1, 8, 2}, 1)), absent(),
                 absent(), tensor_of<float>({1, 1, 2}, {1, 2}), tensor_of<float>({1, 1, 2}, {3, 4})});
  for (const KernelVariant& variant : kLstm.variants) {
    const Outcome y = run_variant(op_case, variant);
    EXPECT_EQ(y.outputs[1].values<float>(), (std::vector<float>{1, 2}));
    EXPECT_EQ(y.outputs[2].values<float>(), (std::vector<float>{3, 4}));
  }
}

OpCase random_lstm_case(Random& random, RnnSizes (*sizes)(Random&)) {
  LstmParams params{.direction = static_cast<RnnDirection>(random_int(random, 0, 2)),
                    .clip = random_int(random, 0, 2) == 0 ? 0.7F : 0.0F,
                    .input_forget = static_cast<std::int32_t>(random_int(random, 0, 1)),
                    .cell_clip = random_int(random, 0, 2) == 0 ? 0.3F : 0.0F};
  // Bounded ones: others let the state grow, and with it the rounding.
  constexpr RnnFunction kBounded[] = {RnnFunction::kHardSigmoid, RnnFunction::kTanh, RnnFunction::kSigmoid};
  if (random_int(random, 0, 2) == 0) {
    for (RnnFunction& function : params.activations.functions) function = kBounded[random_int(random, 0, 2)];
    std::ranges::fill(params.activations.alpha, 0.2F);
    std::ranges::fill(params.activations.beta, 0.5F);
  }
  const std::int64_t d = params.direction == RnnDirection::kBidirectional ? 2 : 1;
  const RnnSizes size = sizes(random);
  std::vector<Operand> operands = random_rnn_operands(random, size, d, 4);
  for (const auto& dims : {std::vector<std::int64_t>{d, size.batch, size.hidden}, {d, 3 * size.hidden}})
    operands.push_back(maybe_absent(random, random_rnn_tensor(random, dims)));
  return make_case(kLstm, params, std::move(operands));
}

TEST(Lstm, VariantsMatchReference) {
  expect_variants_match_reference([](Random& random) { return random_lstm_case(random, random_rnn_sizes); },
                                  {.cases = 60,
                                   .must_cover = {"f32_packed__simd", "f32_packed_f16__simd", "f32_packed_bf16__simd",
                                                  "f32_packed_i8__simd", "f32_packed_i4__simd"}});
}

TEST(Lstm, VariantsMatchReferenceWhereThreadsShareTheWork) {
  expect_variants_match_reference([](Random& random) { return random_lstm_case(random, random_shared_rnn_sizes); },
                                  {.cases = 20, .must_cover = {"f32_packed__simd", "f32_packed_i8__simd"}});
}

TEST(Lstm, LengthOutsideTheSequenceIsAFault) {
  for (const std::int32_t length : {-1, 2}) {
    const OpCase op_case =
        make_case(kLstm, LstmParams{},
                  {filled({1, 1, 1}, 1), constant(filled({1, 4, 1}, 1)), constant(filled({1, 4, 1}, 1)), absent(),
                   tensor_of<std::int32_t>({1}, {length})});
    for (const KernelVariant& variant : kLstm.variants)
      EXPECT_EQ(run_variant(op_case, variant).status.code, StatusCode::kOutOfRange);
  }
}

TEST(Lstm, RefusesHostileShapesAndParameters) {
  std::vector<TensorDesc> outputs;
  const auto accepted = [&](const LstmParams& p, std::vector<Operand> operands) {
    return infer_case(make_case(kLstm, p, std::move(operands)), &outputs).ok();
  };
  const TestTensor x = filled({1, 1, 2}, 1);
  const TestTensor w = filled({1, 8, 2}, 1);
  EXPECT_TRUE(accepted({}, {x, w, w}));
  EXPECT_FALSE(accepted({.direction = static_cast<RnnDirection>(3)}, {x, w, w}));
  EXPECT_FALSE(accepted({.direction = RnnDirection::kBidirectional}, {x, w, w}));
  EXPECT_FALSE(accepted({.clip = -1}, {x, w, w}));
  EXPECT_FALSE(accepted({.clip = std::nanf("")}, {x, w, w}));
  EXPECT_FALSE(accepted({.input_forget = 2}, {x, w, w}));
  EXPECT_FALSE(accepted({.cell_clip = -1}, {x, w, w}));
  EXPECT_FALSE(accepted({.cell_clip = std::nanf("")}, {x, w, w}));
  LstmParams params;
  params.activations.functions[5] = RnnFunction::kCount;
  EXPECT_FALSE(accepted(params, {x, w, w}));
  EXPECT_FALSE(accepted({}, {x, filled({1, 6, 2}, 1), w}));
  EXPECT_FALSE(accepted({}, {x, w, filled({1, 8, 3}, 1)}));
  EXPECT_FALSE(accepted({}, {filled({1, 2}, 1), w, w}));
  EXPECT_FALSE(accepted({}, {x, w, filled({8, 2}, 1)}));
  EXPECT_FALSE(accepted({}, {x, w, w, filled({1, 8}, 1)}));
  EXPECT_FALSE(accepted({}, {x, w, w, absent(), filled({1}, 1)}));
  EXPECT_FALSE(accepted({}, {x, w, w, absent(), tensor_of<std::int32_t>({2}, {1, 1})}));
  EXPECT_FALSE(accepted({}, {x, w, w, absent(), absent(), filled({1, 1, 3}, 1)}));
  EXPECT_FALSE(accepted({}, {x, w, w, absent(), absent(), absent(), filled({1, 2, 2}, 1)}));
  EXPECT_FALSE(accepted({}, {x, w, w, absent(), absent(), absent(), absent(), filled({1, 5}, 1)}));
}

}  // namespace
}  // namespace bantam::ops
