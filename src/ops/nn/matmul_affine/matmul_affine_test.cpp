#include "ops/nn/matmul_affine/matmul_affine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary
using ::testing::ElementsAre;

MatmulAffineParams to(ElementType type) { return {.form = {.to = type}}; }

TEST(MatmulAffine, MultipliesAsTheStandardsExample) {
  // The example of MatMulInteger in the ONNX standard: a zero point 12, b zero point 0.
  MatmulAffineParams p = to(ElementType::kI32);
  p.form.input_zero_point = 12;
  const Outcome y = run_reference(make_case(kMatmulAffine, p,
                                            {tensor_of<std::uint8_t>({4, 3}, {11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0}),
                                             tensor_of<std::uint8_t>({3, 2}, {1, 4, 2, 5, 3, 6})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<std::int32_t>(), ElementsAre(-38, -83, -44, -98, -50, -113, -56, -128));
}

TEST(MatmulAffine, RowsAndColumnsMayHaveZeroPointsOfTheirOwn) {
  const Outcome y = run_reference(
      make_case(kMatmulAffine, to(ElementType::kI32),
                {tensor_of<std::int8_t>({2, 1}, {10, 10}), tensor_of<std::int8_t>({1, 2}, {5, 5}), absent(), absent(),
                 tensor_of<std::int8_t>({2}, {1, 2}), tensor_of<std::int8_t>({2}, {3, -3})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<std::int32_t>(), ElementsAre(18, 72, 16, 64));
}

TEST(MatmulAffine, WithoutInnerElementsGivesTheBias) {
  const Outcome y = run_reference(make_case(
      kMatmulAffine, to(ElementType::kI32),
      {tensor_of<std::int8_t>({1, 0}, {}), tensor_of<std::int8_t>({0, 2}, {}), tensor_of<std::int32_t>({2}, {7, -8})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<std::int32_t>(), ElementsAre(7, -8));
}

TEST(MatmulAffine, RefusesWhatDoesNotFit) {
  const auto ok = [](std::vector<std::int64_t> a, std::vector<std::int64_t> b, MatmulAffineParams p) {
    std::vector<TensorDesc> outputs;
    return testing::infer_case(make_case(kMatmulAffine, p,
                                         {testing::TestTensor(testing::dense_desc(ElementType::kI8, a)),
                                          testing::TestTensor(testing::dense_desc(ElementType::kU8, b))}),
                               &outputs)
        .ok();
  };
  EXPECT_TRUE(ok({2, 3}, {3, 4}, to(ElementType::kI32)));
  EXPECT_TRUE(ok({5, 2, 3}, {1, 3, 4}, to(ElementType::kI32)));
  EXPECT_FALSE(ok({2, 3}, {4, 3}, to(ElementType::kI32)));
  EXPECT_FALSE(ok({3}, {3, 4}, to(ElementType::kI32)));
  EXPECT_FALSE(ok({2, 2, 3}, {3, 3, 4}, to(ElementType::kI32)));
  EXPECT_FALSE(ok({2, 3}, {3, 4}, to(ElementType::kI8))) << "no scale";
  MatmulAffineParams p = to(ElementType::kI32);
  p.transpose_b = 2;
  EXPECT_FALSE(ok({2, 3}, {3, 4}, p));
  p = to(ElementType::kI32);
  p.form.weights_zero_point = -1;
  EXPECT_FALSE(ok({2, 3}, {3, 4}, p));
}

OpCase random_matmul_affine_case(Random& random) {
  const auto small = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  constexpr ElementType kResults[] = {ElementType::kI8, ElementType::kU8, ElementType::kI32, ElementType::kF32};
  const ElementType result = kResults[random() % 4];
  const ElementType a_type = random() % 2 == 0 ? ElementType::kI8 : ElementType::kU8;
  const ElementType b_type = random() % 2 == 0 ? ElementType::kI8 : ElementType::kU8;
  const auto zero_of = [&](ElementType type) { return type == ElementType::kU8 ? small(0, 255) : small(-128, 127); };
  MatmulAffineParams p = to(result);
  p.transpose_b = small(0, 1);
  p.form.input_zero_point = zero_of(a_type);
  p.form.weights_zero_point = random() % 2 == 0 ? 0 : zero_of(b_type);
  if (result == ElementType::kI8 || result == ElementType::kU8) {
    p.form.output_zero_point = zero_of(result);
    p.form.minimum = result == ElementType::kU8 ? 0 : -128;
    p.form.maximum = result == ElementType::kU8 ? 255 : 127;
  }
  const std::int64_t m = random_int(random, 1, random() % 2 == 0 ? 40 : 3);
  const std::int64_t k = random_int(random, 1, 50);
  const std::int64_t n = random_int(random, 1, random() % 2 == 0 ? 70 : 5);
  const std::int64_t batch = random_int(random, 1, 3);
  const bool one_b = random() % 2 == 0;
  std::vector<std::int64_t> b_dims = p.transpose_b != 0 ? std::vector{n, k} : std::vector{k, n};
  if (!one_b) b_dims.insert(b_dims.begin(), random() % 2 == 0 ? batch : 1);
  std::vector<Operand> inputs;
  inputs.emplace_back(random() % 2 == 0
                          ? random_tensor(a_type, {batch, m, k}, random, -128, 255)
                          : testing::random_activations(a_type, {batch, m, k}, random, p.form.input_zero_point));
  inputs.emplace_back(random_tensor(b_type, b_dims, random, -128, 255), random() % 2 == 0);
  const ElementType bias = result == ElementType::kF32 ? ElementType::kF32 : ElementType::kI32;
  inputs.push_back(random() % 2 == 0 ? absent() : constant(random_tensor(bias, {n}, random, -5000, 5000)));
  const std::int64_t scales = random() % 2 == 0 ? 1 : n;
  inputs.push_back(result == ElementType::kI32
                       ? absent()
                       : constant(random_tensor(ElementType::kF32, {scales}, random, 0.0001, 0.01)));
  if (random() % 3 == 0) {
    inputs.emplace_back(random_tensor(a_type, {random() % 2 == 0 ? 1 : m}, random, 0, 127));
    inputs.emplace_back(random_tensor(b_type, {random() % 2 == 0 ? 1 : n}, random, 0, 127));
  }
  return make_case(kMatmulAffine, p, std::move(inputs));
}

TEST(MatmulAffine, VariantsMatchReference) {
  testing::expect_variants_match_reference(random_matmul_affine_case,
                                           {.cases = 200, .must_cover = {"i8_packed__simd", "i8_dynamic__simd"}});
}

TEST(MatmulAffine, IntegerResultsAreExactInEveryVariant) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const OpCase c = random_matmul_affine_case(random);
    if (reinterpret_cast<const MatmulAffineParams*>(c.params.data())->form.to == ElementType::kF32) continue;
    const Outcome expected = run_reference(c);
    for (const KernelVariant& variant : kMatmulAffine.variants) {
      if (!testing::variant_supports(c, variant)) continue;
      EXPECT_EQ(testing::compare(testing::run_variant(c, variant).outputs[0], expected.outputs[0], {}), "")
          << variant.name << ", seed " << seed;
      ++compared;
    }
  }
  EXPECT_GT(compared, 60);
}

// What exporters make of attention over a sequence: a batch of rows. Rows in pieces take up to ten times as long.
TEST(MatmulAffine, OneMatrixOfWeightsTakesRowsOfABatchTogether) {
  const MatmulAffineParams p = to(ElementType::kI8);
  std::vector<std::byte> weights(64 * 64);
  const TensorDesc w = testing::dense_desc(ElementType::kI8, {64, 64});
  const auto scratch = [&](const TensorDesc& x) {
    const Tensor inputs[] = {{nullptr, &x}, {weights.data(), &w}};
    const Tensor output{nullptr, &x};
    const OpCall call{&p, inputs, {&output, 1}};
    return footprint(*find_variant(kMatmulAffine, "i8_packed__simd"), call, 1).useful_scratch_bytes;
  };
  EXPECT_EQ(scratch(testing::dense_desc(ElementType::kI8, {256, 1, 64})),
            scratch(testing::dense_desc(ElementType::kI8, {256, 64})));
}

}  // namespace
}  // namespace bantam::ops
