#include "ops/elementwise/binary_affine/binary_affine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/elementwise/quantize/quantize.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

constexpr BinaryFunction kFunctions[] = {BinaryFunction::kAdd,  BinaryFunction::kSub, BinaryFunction::kMul,
                                         BinaryFunction::kDiv,  BinaryFunction::kMin, BinaryFunction::kMax,
                                         BinaryFunction::kPrelu};

OpCase random_binary_affine_case(Random& random, bool whole_range) {
  constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kU8, ElementType::kI16, ElementType::kU16};
  const ElementType type = kTypes[random() % 4];
  const bool is_signed = type == ElementType::kI8 || type == ElementType::kI16;
  const bool wide = type == ElementType::kI16 || type == ElementType::kU16;
  const std::int64_t lowest = is_signed ? (wide ? -32768 : -128) : 0;
  const std::int64_t highest = lowest + (wide ? 65535 : 255);
  std::uniform_real_distribution<float> scale(0.01F, 0.2F);
  BinaryAffineParams p;
  p.function = kFunctions[random() % std::size(kFunctions)];
  p.a_scale = scale(random);
  p.b_scale = scale(random);
  p.y_scale = scale(random);
  p.a_zero_point = static_cast<std::int32_t>(random_int(random, lowest, highest));
  p.b_zero_point = static_cast<std::int32_t>(random_int(random, lowest, highest));
  p.y_zero_point = static_cast<std::int32_t>(random_int(random, lowest, highest));
  const std::int64_t middle = random_int(random, lowest, highest);
  p.minimum = static_cast<std::int32_t>(whole_range ? lowest : random_int(random, lowest, middle));
  p.maximum = static_cast<std::int32_t>(whole_range ? highest : random_int(random, middle, highest));
  const auto dims = random_dims(random, static_cast<int>(random_int(random, 0, 3)), 0, 21);
  auto b_dims = dims;
  if (!b_dims.empty() && random() % 2 == 0) b_dims[random() % b_dims.size()] = 1;
  if (!b_dims.empty() && random() % 3 == 0) b_dims.erase(b_dims.begin());
  const auto low = static_cast<double>(lowest);
  const auto high = static_cast<double>(highest);
  TestTensor b = random() % 3 == 0 ? random_tensor(ElementType::kF32, b_dims, random, -10, 10)
                                   : random_tensor(type, b_dims, random, low, high);
  return make_case(kBinaryAffine, p, {random_tensor(type, dims, random, low, high), std::move(b)});
}

/// One-element tensors of the type of `like`.
TestTensor zero_point(std::int32_t value, const TestTensor& like) {
  switch (like.desc().type) {
    case ElementType::kI8: return tensor_of<std::int8_t>({}, {static_cast<std::int8_t>(value)});
    case ElementType::kU8: return tensor_of<std::uint8_t>({}, {static_cast<std::uint8_t>(value)});
    case ElementType::kI16: return tensor_of<std::int16_t>({}, {static_cast<std::int16_t>(value)});
    default: return tensor_of<std::uint16_t>({}, {static_cast<std::uint16_t>(value)});
  }
}

TEST(BinaryAffine, EqualsDequantizeThenOperatorThenQuantizeToTheBit) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const OpCase affine = random_binary_affine_case(random, true);
    const auto& p = *reinterpret_cast<const BinaryAffineParams*>(affine.params.data());
    const auto real = [&](std::size_t i, float scale, std::int32_t zero) {
      const TestTensor& x = affine.inputs[i].tensor;
      if (x.desc().type == ElementType::kF32) return x;
      return run_reference(
                 make_case(kDequantize, DequantizeParams{}, {x, tensor_of<float>({}, {scale}), zero_point(zero, x)}))
          .outputs[0];
    };
    const Outcome y =
        run_reference(make_case(kBinary, BinaryParams{p.function, {}},
                                {real(0, p.a_scale, p.a_zero_point), real(1, p.b_scale, p.b_zero_point)}));
    const TestTensor& a = affine.inputs[0].tensor;
    const Outcome expected =
        run_reference(make_case(kQuantize, QuantizeParams{a.desc().type, 0, 0},
                                {y.outputs[0], tensor_of<float>({}, {p.y_scale}), zero_point(p.y_zero_point, a)}));
    const Outcome actual = run_reference(affine);
    ASSERT_TRUE(actual.status.ok() && expected.status.ok());
    EXPECT_EQ(compare(actual.outputs[0], expected.outputs[0], {}), "") << "seed " << seed;
  }
}

TEST(BinaryAffine, LimitsItsResults) {
  BinaryAffineParams p;
  p.minimum = 0;
  p.maximum = 6;
  const Outcome y = run_reference(
      make_case(kBinaryAffine, p, {tensor_of<std::int8_t>({3}, {-5, 2, 100}), tensor_of<std::int8_t>({1}, {1})}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(y.outputs[0].values<std::int8_t>(), (std::vector<std::int8_t>{0, 3, 6}));
}

TEST(BinaryAffine, RealNumbersThatAreNoneCountAsZeroAndInfiniteOnesSaturate) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  BinaryAffineParams p;
  p.function = BinaryFunction::kMul;
  p.a_zero_point = 1;
  p.y_zero_point = 3;
  std::vector<std::int8_t> a(400, std::int8_t{5});
  a[1] = 1;
  const std::vector<float> b{kInfinity, kInfinity, -kInfinity, NAN};
  const OpCase four = make_case(kBinaryAffine, p, {tensor_of<std::int8_t>({100, 4}, a), tensor_of<float>({1, 4}, b)});
  const Outcome y = run_reference(four);
  ASSERT_TRUE(y.status.ok());
  const auto first = y.outputs[0].values<std::int8_t>();
  EXPECT_EQ((std::vector<std::int8_t>{first.begin(), first.begin() + 4}), (std::vector<std::int8_t>{127, 3, -128, 3}));
  expect_variants_match_reference([&](Random&) { return four; }, {.cases = 1});
}

TEST(BinaryAffine, RefusesParametersOutsideTheType) {
  const TestTensor x = tensor_of<std::int8_t>({1}, {0});
  const auto code = [&x](auto change) {
    BinaryAffineParams p;
    change(p);
    return run_reference(make_case(kBinaryAffine, p, {x, x})).status.code;
  };
  EXPECT_EQ(code([](BinaryAffineParams&) {}), StatusCode::kOk);
  EXPECT_EQ(code([](BinaryAffineParams& p) { p.a_zero_point = 128; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](BinaryAffineParams& p) { p.maximum = 200; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](BinaryAffineParams& p) { p.minimum = 100, p.maximum = 50; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](BinaryAffineParams& p) { p.y_scale = 0.0F; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](BinaryAffineParams& p) { p.b_scale = NAN; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](BinaryAffineParams& p) { p.function = BinaryFunction::kPow; }), StatusCode::kUnsupported);
  const auto code_of = [](const TestTensor& a, const TestTensor& b) {
    return run_reference(make_case(kBinaryAffine, BinaryAffineParams{}, {a, b})).status.code;
  };
  const TestTensor real = tensor_of<float>({1}, {0.5F});
  EXPECT_EQ(code_of(x, real), StatusCode::kOk);
  EXPECT_EQ(code_of(real, x), StatusCode::kUnsupported);
  EXPECT_EQ(code_of(x, tensor_of<std::uint8_t>({1}, {0})), StatusCode::kInvalidModel);
}

/// Every pair of bytes. Scales of few digits give many ties, which a * b + c rounded once instead of twice decides
/// otherwise.
OpCase random_case_of_all_pairs(Random& random) {
  std::vector<std::int8_t> all(256);
  std::iota(all.begin(), all.end(), std::int8_t{-128});
  const bool ties = random() % 2 == 0;
  std::uniform_real_distribution<float> any(0.003F, 0.03F);
  const auto scale = [&] { return ties ? 0.01F * static_cast<float>(random_int(random, 1, 10)) : any(random); };
  constexpr BinaryFunction kUndivided[] = {BinaryFunction::kAdd, BinaryFunction::kSub, BinaryFunction::kMul,
                                           BinaryFunction::kPrelu};
  BinaryAffineParams p;
  p.function = kUndivided[random() % std::size(kUndivided)];
  p.a_scale = scale();
  p.b_scale = scale();
  p.y_scale = scale();
  p.a_zero_point = 30;
  p.b_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
  TestTensor b = tensor_of<std::int8_t>({256}, all);
  if (random() % 2 == 0) {
    std::vector<float> reals(256);
    std::uniform_real_distribution<float> real(-2.0F, 2.0F);
    for (float& x : reals) x = ties ? 0.25F * static_cast<float>(random_int(random, -9, 9)) : real(random);
    b = tensor_of<float>({256}, reals);
  }
  return make_case(kBinaryAffine, p, {tensor_of<std::int8_t>({256, 1}, all), std::move(b)});
}

TEST(BinaryAffine, VariantsMatchReferenceToTheBitForAllPairs) {
  expect_variants_match_reference(random_case_of_all_pairs,
                                  {.cases = 60, .must_cover = {kBinaryAffine.variants[0].name}});
}

TEST(BinaryAffine, VariantsMatchReferenceToTheBitWhereRowsShareAnOperand) {
  const auto generate = [](Random& random) {
    std::uniform_real_distribution<float> scale(0.003F, 0.03F);
    BinaryAffineParams p;
    constexpr BinaryFunction kShared[] = {BinaryFunction::kAdd, BinaryFunction::kSub, BinaryFunction::kMul,
                                          BinaryFunction::kPrelu, BinaryFunction::kMax};
    p.function = kShared[random() % std::size(kShared)];
    p.a_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
    p.b_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
    p.a_scale = scale(random);
    p.b_scale = scale(random);
    p.y_scale = scale(random);
    const std::int64_t channels = random_int(random, 1, 1100);
    const std::int64_t pixels = random_int(random, 1, 40000 / channels);
    TestTensor rows = random_tensor(ElementType::kI8, {pixels, channels}, random, -128, 127);
    TestTensor row = random_tensor(ElementType::kI8, {1, channels}, random, -128, 127);
    if (random() % 3 == 0) {
      const double most = random() % 2 == 0 ? 1 : 300;
      row = random_tensor(ElementType::kF32, {1, channels}, random, -most, most);
    } else if (random() % 2 == 0) {
      std::swap(rows, row);
    }
    return make_case(kBinaryAffine, p, {std::move(rows), std::move(row)});
  };
  expect_variants_match_reference(generate, {.cases = 80, .must_cover = {kBinaryAffine.variants[0].name}});
}

TEST(BinaryAffine, VariantsMatchReferenceToTheBit) {
  expect_variants_match_reference([](Random& random) { return random_binary_affine_case(random, false); },
                                  {.cases = 200, .must_cover = {kBinaryAffine.variants[0].name}});
}

}  // namespace
}  // namespace bantam::ops
