#include "ops/data/concat/concat.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TEST(Concat, JoinsAlongAnyAxis) {
  const TestTensor a = tensor_of<std::int16_t>({2, 2}, {1, 2, 3, 4});
  const TestTensor b = tensor_of<std::int16_t>({2, 1}, {5, 6});
  const TestTensor c = tensor_of<std::int16_t>({1, 2}, {7, 8});
  EXPECT_EQ(run_reference(make_case(kConcat, ConcatParams{.axis = 1}, {a, b})).outputs[0].values<std::int16_t>(),
            (std::vector<std::int16_t>{1, 2, 5, 3, 4, 6}));
  EXPECT_EQ(run_reference(make_case(kConcat, ConcatParams{.axis = 0}, {a, c})).outputs[0].values<std::int16_t>(),
            (std::vector<std::int16_t>{1, 2, 3, 4, 7, 8}));
}

TEST(Concat, EmptyOperandsAddNothing) {
  const TestTensor a = tensor_of<float>({0, 2}, {});
  const TestTensor b = tensor_of<float>({1, 2}, {1, 2});
  const Outcome y = run_reference(make_case(kConcat, ConcatParams{}, {a, b, a}));
  EXPECT_EQ(y.outputs[0].values<float>(), (std::vector<float>{1, 2}));
}

TEST(Concat, OperandsProducedInPlaceGiveTheSameResult) {
  Random random(9);
  for (int round = 0; round < 100; ++round) {
    const auto axis = static_cast<std::int32_t>(random_int(random, 0, 2));
    auto dims = random_dims(random, 3, 0, 4);
    std::vector<Operand> operands;
    for (int i = 0; i < 3; ++i) {
      dims[static_cast<std::size_t>(axis)] = random_int(random, 0, 3);
      const TestTensor x = random_tensor(ElementType::kI32, dims, random, -999, 999);
      operands.emplace_back(x.with_strides(random_strides(x.desc(), random)));
    }
    const OpCase op_case = make_case(kConcat, ConcatParams{.axis = axis}, operands);
    const Outcome y = run_reference(op_case);
    ASSERT_TRUE(y.status.ok());
    const ConcatParams params{.axis = axis};
    std::vector<Tensor> inputs;
    for (const Operand& operand : operands) inputs.push_back(operand.tensor.shape_only());
    const Tensor output = y.outputs[0].shape_only();
    for (int i = 0; i < 3; ++i) {
      TensorDesc view;
      std::int64_t offset = 0;
      ASSERT_TRUE(kConcat.input_view({&params, inputs, {&output, 1}}, i, &view, &offset));
      std::vector<std::int32_t> seen;
      const auto* base = static_cast<const std::int32_t*>(y.outputs[0].data()) + offset;
      for (int a = 0; a < view.dims[0]; ++a)
        for (int b = 0; b < view.dims[1]; ++b)
          for (int c = 0; c < view.dims[2]; ++c)
            seen.push_back(base[a * view.strides[0] + b * view.strides[1] + c * view.strides[2]]);
      EXPECT_EQ(seen, operands[static_cast<std::size_t>(i)].tensor.values<std::int32_t>());
    }
  }
}

TEST(Concat, OperandsThatLieWithinTheResultStayThere) {
  expect_variants_match_reference([](Random& random) {
    const auto axis = static_cast<std::int32_t>(random_int(random, 0, 2));
    auto dims = random_dims(random, 3, 0, 4);
    std::vector<Operand> operands;
    for (int i = 0; i < 3; ++i) {
      dims[static_cast<std::size_t>(axis)] = random_int(random, 0, 3);
      operands.emplace_back(random_tensor(ElementType::kI16, dims, random, -999, 999));
    }
    return make_case(kConcat, ConcatParams{.axis = axis}, operands);
  });
}

// Two operands always lie equally far apart, more of them sometimes do.
TEST(Concat, StackedOperandsAlternate) {
  expect_variants_match_reference([](Random& random) {
    const std::vector<std::int64_t> dims{random_int(random, 1, 3), random_int(random, 1, 70), 1, 1};
    std::vector<Operand> operands;
    for (std::int64_t i = random_int(random, 2, 5); i > 0; --i) {
      const TestTensor x = random_tensor(ElementType::kF32, dims, random, -9, 9);
      operands.emplace_back(random_int(random, 0, 3) == 0 ? x.with_strides(random_strides(x.desc(), random)) : x);
    }
    return make_case(kConcat, ConcatParams{.axis = 2}, operands);
  });
  const TestTensor a = tensor_of<float>({2, 2, 1}, {1, 2, 3, 4});
  const TestTensor b = tensor_of<float>({2, 2, 1}, {5, 6, 7, 8});
  EXPECT_EQ(run_reference(make_case(kConcat, ConcatParams{.axis = 2}, {a, b})).outputs[0].values<float>(),
            (std::vector<float>{1, 5, 2, 6, 3, 7, 4, 8}));
  EXPECT_EQ(run_reference(make_case(kConcat, ConcatParams{.axis = 2}, {a, a, b})).outputs[0].values<float>(),
            (std::vector<float>{1, 1, 5, 2, 2, 6, 3, 3, 7, 4, 4, 8}));
}

// Operands of one, no and two columns are as many columns as operands, and may lie equally far apart, too.
TEST(Concat, OperandsOfOtherWidthsAreNoStack) {
  std::vector<float> memory = {1, 2, 3, 4, 5, 6, 7, 8};
  const TensorDesc descs[] = {dense_desc(ElementType::kF32, {2, 1}), dense_desc(ElementType::kF32, {2, 0}),
                              dense_desc(ElementType::kF32, {2, 2})};
  const TensorDesc out = dense_desc(ElementType::kF32, {2, 3});
  std::vector<float> y(6, 0.0F);
  const Tensor inputs[] = {{&memory[0], &descs[0]}, {&memory[2], &descs[1]}, {&memory[4], &descs[2]}};
  const Tensor output{y.data(), &out};
  const ConcatParams params{.axis = 1};
  const Threads threads;
  ASSERT_TRUE(kConcat.variants[0].run({&params, inputs, {&output, 1}, nullptr, &threads, 0}).ok());
  EXPECT_EQ(y, (std::vector<float>{1, 5, 6, 2, 7, 8}));
}

// So much that threads share the rows of all operands, or those of one after the other.
TEST(Concat, ManyElementsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        const auto axis = static_cast<std::int32_t>(random_int(random, 0, 2));
        std::vector<std::int64_t> dims{random_int(random, 1, 40), random_int(random, 30, 60),
                                       random_int(random, 30, 60)};
        std::vector<Operand> operands;
        for (int i = 0; i < 3; ++i) {
          dims[static_cast<std::size_t>(axis)] = random_int(random, 1, 40);
          operands.emplace_back(random_tensor(ElementType::kI16, dims, random, -999, 999));
        }
        return make_case(kConcat, ConcatParams{.axis = axis}, operands);
      },
      {.cases = 12});
}

TEST(Concat, RefusesOperandsThatDoNotMatch) {
  std::vector<TensorDesc> outputs;
  const TestTensor a = tensor_of<float>({2, 2}, {1, 2, 3, 4});
  const auto refused = [&](ConcatParams params, std::vector<Operand> operands) {
    return !infer_case(make_case(kConcat, params, std::move(operands)), &outputs).ok();
  };
  EXPECT_TRUE(refused({.axis = 2}, {a}));
  EXPECT_TRUE(refused({.axis = -1}, {a}));
  EXPECT_TRUE(refused({.axis = 0}, {a, tensor_of<float>({1, 3}, {1, 2, 3})}));
  EXPECT_TRUE(refused({.axis = 0}, {a, tensor_of<float>({2}, {1, 2})}));
  EXPECT_TRUE(refused({.axis = 0}, {a, tensor_of<std::int32_t>({2, 2}, {1, 2, 3, 4})}));
  EXPECT_TRUE(refused({.axis = 0}, {tensor_of<float>({}, {1})}));
}

}  // namespace
}  // namespace bantam::ops
