#include "ops/nn/simple_rnn/simple_rnn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/testing/harness.h"
#include "ops/testing/rnn_operands.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

OpCase random_simple_rnn_case(Random& random, RnnSizes (*sizes)(Random&)) {
  SimpleRnnParams params{.direction = static_cast<RnnDirection>(random_int(random, 0, 2)),
                         .clip = random_int(random, 0, 2) == 0 ? 0.7F : 0.0F};
  // Bounded ones: others let the state grow, and with it the rounding.
  constexpr RnnFunction kBounded[] = {RnnFunction::kTanh, RnnFunction::kSigmoid, RnnFunction::kSoftsign,
                                      RnnFunction::kScaledTanh};
  for (RnnFunction& function : params.activations.functions) function = kBounded[random_int(random, 0, 3)];
  std::ranges::fill(params.activations.alpha, 0.9F);
  std::ranges::fill(params.activations.beta, 0.5F);
  const std::int64_t d = params.direction == RnnDirection::kBidirectional ? 2 : 1;
  const RnnSizes size = sizes(random);
  return make_case(kSimpleRnn, params, random_rnn_operands(random, size, d, 1));
}

TEST(SimpleRnn, FollowsItsRecurrence) {
  // h1 = tanh(0.5 + 0.25), h2 = tanh(-1 + 2 h1 + 0.25), by hand.
  const auto one = [](float value) { return tensor_of<float>({1, 1, 1}, {value}); };
  const Outcome y = run_reference(make_case(
      kSimpleRnn, SimpleRnnParams{},
      {tensor_of<float>({2, 1, 1}, {0.5F, -1}), one(1), one(2), constant(tensor_of<float>({1, 2}, {0.125F, 0.125F}))}));
  ASSERT_TRUE(y.status.ok());
  const auto all = y.outputs[0].values<float>();
  EXPECT_NEAR(all[0], std::tanh(0.75F), 1e-6);
  EXPECT_NEAR(all[1], std::tanh(-0.75F + 2 * std::tanh(0.75F)), 1e-6);
  EXPECT_EQ(y.outputs[1].values<float>().front(), all[1]);
}

TEST(SimpleRnn, DirectionsHaveTheirOwnActivationsAndLengths) {
  SimpleRnnParams params{.direction = RnnDirection::kBidirectional};
  params.activations.functions[0] = RnnFunction::kRelu;
  params.activations.functions[1] = RnnFunction::kAffine;
  params.activations.alpha[1] = 2;
  params.activations.beta[1] = 1;
  const Outcome y =
      run_reference(make_case(kSimpleRnn, params,
                              {tensor_of<float>({2, 1, 1}, {-3, 5}), tensor_of<float>({2, 1, 1}, {1, 1}),
                               tensor_of<float>({2, 1, 1}, {1, 0}), absent(), tensor_of<std::int32_t>({1}, {1})}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(y.outputs[0].values<float>(), (std::vector<float>{0, -5, 0, 0}));
  EXPECT_EQ(y.outputs[1].values<float>(), (std::vector<float>{0, -5}));
}

TEST(SimpleRnn, VariantsMatchReference) {
  expect_variants_match_reference([](Random& random) { return random_simple_rnn_case(random, random_rnn_sizes); },
                                  {.cases = 60, .must_cover = {"f32_packed__simd"}});
}

TEST(SimpleRnn, VariantsMatchReferenceWhereThreadsShareTheWork) {
  expect_variants_match_reference(
      [](Random& random) { return random_simple_rnn_case(random, random_shared_rnn_sizes); },
      {.cases = 20, .must_cover = {"f32_packed__simd"}});
}

TEST(SimpleRnn, RefusesHostileShapesAndParameters) {
  std::vector<TensorDesc> outputs;
  const auto accepted = [&](const SimpleRnnParams& p, std::vector<Operand> operands) {
    return infer_case(make_case(kSimpleRnn, p, std::move(operands)), &outputs).ok();
  };
  Random random(1);
  const TestTensor x = random_tensor(ElementType::kF32, {1, 1, 2}, random);
  const TestTensor w = random_tensor(ElementType::kF32, {1, 2, 2}, random);
  EXPECT_TRUE(accepted({}, {x, w, w}));
  EXPECT_FALSE(accepted({.direction = static_cast<RnnDirection>(7)}, {x, w, w}));
  EXPECT_FALSE(accepted({.clip = INFINITY}, {x, w, w}));
  EXPECT_FALSE(accepted({}, {x, w, random_tensor(ElementType::kF32, {1, 4, 2}, random)}));
  SimpleRnnParams params;
  params.activations.functions[0] = static_cast<RnnFunction>(-1);
  EXPECT_FALSE(accepted(params, {x, w, w}));
}

}  // namespace
}  // namespace bantam::ops
