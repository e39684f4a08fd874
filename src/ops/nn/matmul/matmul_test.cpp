#include "ops/nn/matmul/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/nn/matmul/geometry.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using testing::absent;
using testing::constant;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using testing::make_case;
using testing::OpCase;
using testing::Outcome;
using ::testing::Pointwise;
using testing::Random;
using testing::random_int;
using testing::random_tensor;
using testing::run_reference;
using testing::tensor_of;
using testing::TestTensor;

TEST(Matmul, MultipliesRowsByColumns) {
  const Outcome y =
      run_reference(make_case(kMatmul, MatmulParams{},
                              {tensor_of<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
                               tensor_of<float>({3, 2}, {1, 0, 0, 1, 1, 1}), tensor_of<float>({2}, {10, 20})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(14, 25, 20, 31));
}

TEST(Matmul, TransposesOperands) {
  const Outcome y = run_reference(
      make_case(kMatmul, MatmulParams{.transpose_a = 1, .transpose_b = 1},
                {tensor_of<float>({3, 2}, {1, 4, 2, 5, 3, 6}), tensor_of<float>({2, 3}, {1, 0, 1, 0, 1, 1})}));
  EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(4, 5, 10, 11));
}

TEST(Matmul, BroadcastsLeadingDimensions) {
  const Outcome y = run_reference(
      make_case(kMatmul, MatmulParams{},
                {tensor_of<float>({2, 1, 1, 2}, {1, 2, 3, 4}), tensor_of<float>({2, 2, 1}, {1, 1, 10, 10})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_EQ(testing::describe(y.outputs[0].desc()), "f32[2,2,1,1]");
  EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(3, 30, 7, 70));
}

/// The geometry of a product of dense operands, with its batch folded.
MatmulGeometry folded(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b,
                      const std::vector<std::int64_t>& y) {
  const auto desc = [](const auto& dims) { return testing::dense_desc(ElementType::kF32, dims); };
  return fold_batch(matmul_geometry({}, desc(a), desc(b), desc(y)));
}

TEST(Matmul, FoldsTheInnermostDimensionsOfABatchThatShareTheRightMatrix) {
  const MatmulGeometry one = folded({2, 3, 4, 5}, {5, 6}, {2, 3, 4, 6});
  EXPECT_EQ(one.m, 24);
  EXPECT_EQ(one.batch.elements, 1);

  const MatmulGeometry several = folded({2, 7, 3, 4, 5}, {2, 1, 1, 5, 6}, {2, 7, 3, 4, 6});
  EXPECT_EQ(several.m, 84);
  EXPECT_EQ(several.batch.elements, 2);
  std::vector<std::array<std::int64_t, 3>> offsets;
  for_each_element(several.batch, [&](const auto& element) { offsets.push_back(element); });
  EXPECT_THAT(offsets,
              ElementsAre(std::array<std::int64_t, 3>{0, 0, 0}, std::array<std::int64_t, 3>{84 * 6, 84 * 5, 30}));

  const MatmulGeometry none = folded({2, 3, 4, 5}, {1, 3, 5, 6}, {2, 3, 4, 6});
  EXPECT_EQ(none.m, 4);
  EXPECT_EQ(none.batch.elements, 6);
}

TEST(Matmul, EmptySumIsTheBias) {
  const Outcome y = run_reference(
      make_case(kMatmul, MatmulParams{},
                {tensor_of<float>({2, 0}, {}), tensor_of<float>({0, 2}, {}), tensor_of<float>({2}, {3, -4})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(3, -4, 3, -4));
}

TEST(Matmul, Int8SubtractsBothZeroPoints) {
  // acc = (5 - 1) * (7 - 2) + (6 - 1) * (8 - 2) + 3 = 53; halved 26.5 -> 27; minus 4.
  const Outcome y = run_reference(make_case(
      kMatmul, MatmulParams{.transpose_b = 1, .input_zero_point = 1, .weights_zero_point = 2, .output_zero_point = -4},
      {tensor_of<std::int8_t>({1, 2}, {5, 6}), tensor_of<std::int8_t>({1, 2}, {7, 8}),
       tensor_of<std::int32_t>({1}, {3}), tensor_of<std::int32_t>({1}, {1 << 30}), tensor_of<std::int32_t>({1}, {0})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<std::int8_t>(), ElementsAre(23));
}

TEST(Matmul, HybridQuantisesEachRow) {
  const Outcome y = run_reference(
      make_case(kMatmul, MatmulParams{.transpose_b = 1},
                {tensor_of<float>({2, 2}, {1.27F, 0.5F, 0.0F, 0.0F}), tensor_of<std::int8_t>({2, 2}, {1, 2, -3, 0}),
                 tensor_of<float>({2}, {1, 2}), tensor_of<float>({1}, {0.1F})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<float>(), Pointwise(FloatNear(1e-5F), {1.227F, 2 - 0.381F, 1.0F, 2.0F}));
}

TEST(Matmul, HybridMayQuantiseOverTheRangeOfTheRow) {
  // Row 0: scale 2.55 / 255 = 0.01, zero point -28; rows of zeros and of positive numbers (zero point -128).
  const Outcome y = run_reference(make_case(
      kMatmul, MatmulParams{.transpose_b = 1, .asymmetric = 1},
      {tensor_of<float>({3, 3}, {-1, 0.55F, 1.55F, 0, 0, 0, 2.55F, 0.5F, 0.004F}),
       tensor_of<std::int8_t>({1, 3}, {1, 2, -3}), tensor_of<float>({1}, {1}), tensor_of<float>({1}, {0.1F})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<float>(), Pointwise(FloatNear(1e-5F), {1 - 0.455F, 1.0F, 1 + 0.355F}));
}

TEST(Matmul, QuantisingOverARangeIsDefinedForAllNumbers) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float huge = std::numeric_limits<float>::max();
  const std::vector<std::vector<float>> rows = {{inf, -inf}, {nan, 1}, {nan, nan}, {huge, -huge}, {-1e-45F, 1e-45F}};
  for (const std::vector<float>& row : rows) {
    const Outcome y = run_reference(make_case(
        kMatmul, MatmulParams{.transpose_b = 1, .asymmetric = 1},
        {tensor_of<float>({1, 2}, row), tensor_of<std::int8_t>({1, 2}, {1, 1}), absent(), tensor_of<float>({1}, {1})}));
    EXPECT_TRUE(y.status.ok()) << y.status.message;
  }
}

TEST(Matmul, RefusesWhatDoesNotFit) {
  const auto ok = [](MatmulParams p, const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b,
                     ElementType type = ElementType::kF32) {
    std::vector<TensorDesc> outputs;
    return testing::infer_case(
               make_case(kMatmul, p,
                         {TestTensor(testing::dense_desc(type, a)), TestTensor(testing::dense_desc(type, b))}),
               &outputs)
        .ok();
  };
  EXPECT_TRUE(ok({}, {2, 3}, {3, 4}));
  EXPECT_FALSE(ok({}, {2, 3}, {4, 3}));
  EXPECT_TRUE(ok({.transpose_b = 1}, {2, 3}, {4, 3}));
  EXPECT_FALSE(ok({.transpose_b = 2}, {2, 3}, {4, 3}));
  EXPECT_FALSE(ok({}, {3}, {3, 4}));
  EXPECT_FALSE(ok({}, {2, 2, 3}, {3, 3, 4}));
  EXPECT_FALSE(ok({}, {50000, 1}, {1, 50000}));
  EXPECT_FALSE(ok({.transpose_b = 1}, {2, 3}, {4, 3}, ElementType::kI8)) << "int8 without scales";
  EXPECT_FALSE(ok({}, {2, 3}, {3, 4}, ElementType::kF16));
}

/// A random product; sizes around the kernels' tiles and vectors, batches that fold and batches that broadcast.
OpCase random_float_matmul_case(Random& random) {
  const auto flag = [&] { return static_cast<std::int32_t>(random_int(random, 0, 1)); };
  const MatmulParams p{.transpose_a = random_int(random, 0, 3) == 0,
                       .transpose_b = flag(),
                       .activation = {flag() != 0 ? UnaryFunction::kTanh : UnaryFunction::kIdentity, 0, 0}};
  const std::int64_t m = flag() != 0 ? 1 : random_int(random, 1, 60);
  const std::int64_t n = random_int(random, 1, random_int(random, 0, 9) == 0 ? 1100 : 150);
  const std::int64_t k = random_int(random, 1, 70);
  std::vector<std::int64_t> a{m, k};
  std::vector<std::int64_t> b{k, n};
  if (p.transpose_a != 0) std::swap(a[0], a[1]);
  if (p.transpose_b != 0) std::swap(b[0], b[1]);
  bool b_has_batch = true;
  for (std::int64_t i = random_int(random, 0, 2); i > 0; --i) {
    const std::int64_t size = random_int(random, 1, 3);
    b_has_batch = b_has_batch && flag() != 0;
    if (b_has_batch) b.insert(b.begin(), flag() != 0 ? size : 1);
    a.insert(a.begin(), flag() != 0 ? size : 1);
  }
  testing::Operand right = random_tensor(ElementType::kF32, b, random);
  right.constant = random_int(random, 0, 3) != 0;
  std::vector<testing::Operand> inputs;
  inputs.emplace_back(random_tensor(ElementType::kF32, a, random));
  inputs.push_back(std::move(right));
  if (flag() != 0) inputs.push_back(constant(random_tensor(ElementType::kF32, {n}, random)));
  return make_case(kMatmul, p, std::move(inputs));
}

TEST(Matmul, FloatVariantsMatchReference) {
  testing::expect_variants_match_reference(
      random_float_matmul_case,
      {.cases = 200,
       .must_cover = {"f32_packed__simd", "f32_rows__simd", "f32_dynamic__simd", "f32_packed_f16__simd",
                      "f32_packed_bf16__simd", "f32_packed_i8__simd", "f32_packed_i4__simd"}});
}

/// A random product with int8 weights [n,k]: int8 or hybrid, by the type of a.
OpCase random_quantized_case(Random& random, ElementType type) {
  const auto in_int8 = [&] { return static_cast<std::int32_t>(random_int(random, -128, 127)); };
  MatmulParams p{.transpose_b = 1};
  std::vector<std::int64_t> a{random_int(random, 0, 1) == 0 ? 1 : random_int(random, 1, 40), random_int(random, 1, 90)};
  const std::int64_t k = a[1];
  const std::int64_t n = random_int(random, 1, 100);
  if (random_int(random, 0, 2) == 0) a.insert(a.begin(), random_int(random, 1, 3));
  std::vector<testing::Operand> inputs;
  inputs.emplace_back(random_tensor(type, a, random, -128, 127));
  inputs.push_back(constant(random_tensor(ElementType::kI8, {n, k}, random, -128, 127)));
  const bool has_bias = random_int(random, 0, 2) != 0;
  if (type == ElementType::kF32) {
    p.activation = {random_int(random, 0, 1) == 0 ? UnaryFunction::kIdentity : UnaryFunction::kRelu, 0, 0};
    p.asymmetric = static_cast<std::int32_t>(random_int(random, 0, 1));
    inputs.push_back(has_bias ? constant(random_tensor(ElementType::kF32, {n}, random, -50, 50)) : absent());
    const std::int64_t scales = random_int(random, 0, 1) == 0 ? 1 : n;
    inputs.push_back(constant(random_tensor(ElementType::kF32, {scales}, random, 0.001, 0.1)));
  } else {
    p.input_zero_point = in_int8();
    p.weights_zero_point = random_int(random, 0, 3) == 0 ? in_int8() : 0;
    p.output_zero_point = in_int8();
    inputs.push_back(has_bias ? constant(random_tensor(ElementType::kI32, {n}, random, -20000, 20000)) : absent());
    inputs.push_back(constant(random_tensor(ElementType::kI32, {n}, random, 0x40000000, 0x7fffffff)));
    inputs.push_back(constant(random_tensor(ElementType::kI32, {n}, random, -14, 1)));
  }
  return make_case(kMatmul, p, std::move(inputs));
}

// Several vectors go through an activation together, those left over by themselves: to the bit the same.
TEST(Matmul, AnActivatedResultDoesNotDependOnItsPlace) {
  constexpr std::int64_t kRows = 5;
  constexpr std::int64_t kColumns = 75;
  const TestTensor a = tensor_of<float>({kRows, 1}, {-9.5F, -0.7F, 0.01F, 1.3F, 20.0F});
  const TestTensor b = tensor_of<float>({1, kColumns}, std::vector<float>(kColumns, 1.0F));
  for (const UnaryFunction function : {UnaryFunction::kSigmoid, UnaryFunction::kTanh, UnaryFunction::kSilu,
                                       UnaryFunction::kGelu, UnaryFunction::kElu}) {
    const OpCase op_case = make_case(kMatmul, MatmulParams{.activation = {function, 0.75F, 0}}, {a, constant(b)});
    for (const KernelVariant& variant : kMatmul.variants) {
      if (!testing::variant_supports(op_case, variant)) continue;
      const std::vector<float> y = testing::run_variant(op_case, variant).outputs[0].values<float>();
      for (std::size_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(y[i], y[i / kColumns * kColumns])
            << variant.name << ", function " << static_cast<int>(function) << ", element " << i;
    }
  }
}

TEST(Matmul, ScratchForComputedMatricesGrowsWithThem) {
  const KernelVariant& variant = *find_variant(kMatmul, "f32_dynamic__simd");
  const auto bytes = [&](std::int64_t products, std::int64_t k, int threads) {
    const OpCase op_case = make_case(kMatmul, MatmulParams{},
                                     {TestTensor(dense_desc(ElementType::kF32, {products, 64, k})),
                                      TestTensor(dense_desc(ElementType::kF32, {products, k, 64}))});
    std::vector<TensorDesc> descs;
    EXPECT_TRUE(infer_case(op_case, &descs).ok());
    const Tensor inputs[] = {op_case.inputs[0].tensor.shape_only(), op_case.inputs[1].tensor.shape_only()};
    const Tensor outputs[] = {{nullptr, descs.data()}};
    return footprint(variant, {op_case.params.data(), inputs, outputs}, threads).scratch_bytes;
  };
  for (const int threads : {1, 2, 4}) {
    for (std::int64_t k = 1; k < 200; ++k) EXPECT_LE(bytes(12, k, threads), bytes(12, k + 1, threads)) << k;
    for (std::int64_t n = 1; n < 20; ++n) EXPECT_LE(bytes(n, 50, threads), bytes(n + 1, 50, threads)) << n;
  }
}

TEST(Matmul, Int8VariantsMatchReferenceExactly) {
  testing::expect_variants_match_reference(
      [](Random& random) { return random_quantized_case(random, ElementType::kI8); },
      {.cases = 100, .must_cover = {"i8_packed__simd"}});
}

/// Rows long enough that their sums leave 32 bits, and numbers at the ends of their types.
OpCase random_int16_matmul_case(Random& random) {
  const std::int64_t k = random_int(random, 0, 1) == 0 ? random_int(random, 1, 60) : random_int(random, 500, 1300);
  const std::int64_t n = random_int(random, 1, 40);
  const bool extreme = random_int(random, 0, 2) == 0;
  constexpr ElementType kBiases[] = {ElementType::kNone, ElementType::kI32, ElementType::kI64};
  const ElementType bias = kBiases[random_int(random, 0, 2)];
  return make_case(
      kMatmul, MatmulParams{.transpose_b = 1, .minimum = -32768, .maximum = 32000},
      {random_tensor(ElementType::kI16, {random_int(random, 1, 20), k}, random, -32768, extreme ? -32768 : 32767),
       constant(random_tensor(ElementType::kI8, {n, k}, random, -128, extreme ? -128 : 127)),
       bias == ElementType::kNone ? absent() : constant(random_tensor(bias, {n}, random, -2e9, 2e9)),
       constant(random_tensor(ElementType::kI32, {n}, random, 0x40000000, 0x7fffffff)),
       constant(random_tensor(ElementType::kI32, {n}, random, -20, -5))});
}

TEST(Matmul, Int16VariantsMatchReferenceExactly) {
  testing::expect_variants_match_reference(random_int16_matmul_case, {.cases = 100, .must_cover = {"i8_packed__simd"}});
}

TEST(Matmul, HybridVariantsMatchReference) {
  testing::expect_variants_match_reference(
      [](Random& random) { return random_quantized_case(random, ElementType::kF32); },
      {.cases = 100, .must_cover = {"i8_packed__simd"}});
}

TEST(Matmul, PlainFormKeepsItsType) {
  const auto product = [](auto zero) {
    using T = decltype(zero);
    const OpCase plain =
        make_case(kMatmul, MatmulParams{.transpose_b = 1},
                  {tensor_of<T>({2, 2}, {1, 2, 3, 4}), tensor_of<T>({1, 2}, {5, 6}), tensor_of<T>({1}, {7})});
    return run_reference(plain).outputs[0].values<T>();
  };
  EXPECT_EQ(product(0.0), (std::vector<double>{24, 46}));
  EXPECT_EQ(product(std::int32_t{0}), (std::vector<std::int32_t>{24, 46}));
  EXPECT_EQ(product(std::uint64_t{0}), (std::vector<std::uint64_t>{24, 46}));
  // Wraps, and keeps signs.
  const OpCase wraps =
      make_case(kMatmul, {tensor_of<std::int32_t>({1, 2}, {0x7fffffff, -3}), tensor_of<std::int32_t>({2, 1}, {2, 5})});
  EXPECT_EQ(run_reference(wraps).outputs[0].values<std::int32_t>(), std::vector<std::int32_t>{-17});
  std::vector<TensorDesc> outputs;
  EXPECT_FALSE(
      infer_case(make_case(kMatmul, {tensor_of<double>({1, 1}, {1}), tensor_of<float>({1, 1}, {1})}), &outputs).ok());
  EXPECT_FALSE(infer_case(make_case(kMatmul, MatmulParams{.activation = {UnaryFunction::kRelu, 0, 0}},
                                    {tensor_of<double>({1, 1}, {1}), tensor_of<double>({1, 1}, {1})}),
                          &outputs)
                   .ok());
}

}  // namespace
}  // namespace bantam::ops
