#include "ops/elementwise/quantize/quantize.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

TEST(Quantize, RoundsHalvesAsAskedAndSaturates) {
  for (const std::int32_t away : {0, 1}) {
    const OpCase op_case = make_case(kQuantize, QuantizeParams{ElementType::kI8, 0, away},
                                     {tensor_of<float>({6}, {0.25F, 0.75F, -0.25F, 100.0F, NAN, -1e9F}),
                                      tensor_of<float>({}, {0.5F}), tensor_of<std::int8_t>({}, {3})});
    const std::vector<std::int8_t> expected =
        away != 0 ? std::vector<std::int8_t>{4, 5, 2, 127, 3, -128} : std::vector<std::int8_t>{3, 5, 3, 127, 3, -128};
    for (const KernelVariant& variant : kQuantize.variants) {
      EXPECT_EQ(run_variant(op_case, variant).outputs[0].values<std::int8_t>(), expected) << variant.name;
    }
  }
}

TEST(Quantize, RoundsTheNeighboursOfHalvesToTheirOwnSides) {
  // Among them powers of two, mantissas of many ones, and those whose inverse is no normal number.
  for (const float scale :
       {1.0F, 0.1F, 1.0F / 3, 0x1.FFFFFEp-7F, 0x1.000002p3F, 2.9e-5F, 1e-30F, 1e30F, 1e-38F, 3e38F}) {
    std::vector<float> numbers;
    for (int i = -300; i <= 300; ++i) {
      const float half = (static_cast<float>(i) + 0.5F) * scale;
      for (const float x : {std::nextafter(half, -INFINITY), half, std::nextafter(half, INFINITY)})
        numbers.push_back(x);
    }
    for (const float x : {INFINITY, -INFINITY, -NAN, -0.0F, 1e-45F, 2147483648.0F, FLT_MAX, -FLT_MAX})
      numbers.push_back(x);
    for (const ElementType to : {ElementType::kI8, ElementType::kU8})
      for (const std::int32_t away : {0, 1}) {
        const OpCase op_case = make_case(
            kQuantize, QuantizeParams{to, 0, away},
            {tensor_of<float>({static_cast<std::int64_t>(numbers.size())}, numbers), tensor_of<float>({}, {scale})});
        const Outcome expected = run_reference(op_case);
        for (const KernelVariant& variant : kQuantize.variants)
          EXPECT_EQ(compare(run_variant(op_case, variant).outputs[0], expected.outputs[0], {}), "")
              << variant.name << ", scale " << scale;
      }
  }
}

TEST(Quantize, ScalesSlicesAlongTheAxis) {
  const Outcome y =
      run_reference(make_case(kQuantize, QuantizeParams{ElementType::kU8, 1, 0},
                              {tensor_of<float>({2, 2}, {1, 1, 2, 2}), tensor_of<float>({2}, {0.5F, 0.25F})}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(y.outputs[0].values<std::uint8_t>(), (std::vector<std::uint8_t>{2, 4, 4, 8}));
  const Outcome back =
      run_reference(make_case(kDequantize, DequantizeParams{1}, {y.outputs[0], tensor_of<float>({2}, {0.5F, 0.25F})}));
  EXPECT_EQ(back.outputs[0].values<float>(), (std::vector<float>{1, 1, 2, 2}));
}

TEST(Quantize, RefusesScalesThatDoNotFit) {
  const TestTensor x = tensor_of<float>({2, 3}, {0, 0, 0, 0, 0, 0});
  const TestTensor two = tensor_of<float>({2}, {1, 1});
  const auto code = [](const QuantizeParams& p, std::vector<Operand> operands) {
    return run_reference(make_case(kQuantize, p, std::move(operands))).status.code;
  };
  EXPECT_EQ(code({ElementType::kI8, 0, 0}, {x, two}), StatusCode::kOk);
  EXPECT_EQ(code({ElementType::kI8, 1, 0}, {x, two}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({ElementType::kI8, 2, 0}, {x, two}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({ElementType::kI8, -1, 0}, {x, two}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({ElementType::kI8, 0, 2}, {x, two}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({ElementType::kF16, 0, 0}, {x, two}), StatusCode::kUnsupported);
  EXPECT_EQ(code({ElementType::kI8, 0, 0}, {x, two, tensor_of<std::int8_t>({}, {0})}), StatusCode::kInvalidModel);
}

OpCase random_quantize_case(Random& random, bool quantize) {
  constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kU8, ElementType::kI16, ElementType::kU16,
                                    ElementType::kI32};
  const ElementType type = kTypes[random() % 5];
  const auto dims = random_dims(random, static_cast<int>(random_int(random, 1, 4)), 0, 9);
  const auto axis = static_cast<std::int32_t>(random_int(random, 0, static_cast<std::int64_t>(dims.size()) - 1));
  const bool per_slice = random() % 3 == 0;
  const std::vector<std::int64_t> scale_dims =
      per_slice ? std::vector<std::int64_t>{dims[static_cast<std::size_t>(axis)]} : std::vector<std::int64_t>{};
  std::vector<Operand> operands{random_tensor(quantize ? ElementType::kF32 : type, dims, random, -20, 20),
                                random_tensor(ElementType::kF32, scale_dims, random, 0.05, 0.2)};
  if (random() % 2 == 0) operands.emplace_back(random_tensor(type, scale_dims, random, -100, 100));
  if (!quantize) return make_case(kDequantize, DequantizeParams{axis}, std::move(operands));
  const auto away = static_cast<std::int32_t>(random() % 2);
  return make_case(kQuantize, QuantizeParams{type, axis, away}, std::move(operands));
}

TEST(Quantize, VariantsMatchReference) {
  expect_variants_match_reference([](Random& random) { return random_quantize_case(random, true); },
                                  {.cases = 200, .must_cover = {kQuantize.variants[0].name}});
}

TEST(Dequantize, VariantsMatchReference) {
  expect_variants_match_reference([](Random& random) { return random_quantize_case(random, false); },
                                  {.cases = 200, .must_cover = {kDequantize.variants[0].name}});
}

}  // namespace
}  // namespace bantam::ops
