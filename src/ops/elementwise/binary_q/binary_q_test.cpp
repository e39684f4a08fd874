#include "ops/elementwise/binary_q/binary_q.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

/// A real multiplier below 1 as TFLite stores it: mantissa in [2^30, 2^31), exponent.
void quantize_multiplier(double real, std::int32_t* multiplier, std::int32_t* shift) {
  const double mantissa = std::frexp(real, shift);
  auto q = static_cast<std::int64_t>(std::round(mantissa * 2147483648.0));
  if (q == std::int64_t{1} << 31) {
    q /= 2;
    ++*shift;
  }
  *multiplier = static_cast<std::int32_t>(q);
}

/// Parameters of an addition with these scales, prepared as TFLite prepares them.
BinaryQParams addition(double a_scale, double b_scale, double y_scale, int left_shift) {
  BinaryQParams p;
  const double twice_largest = 2.0 * std::max(a_scale, b_scale);
  p.left_shift = left_shift;
  quantize_multiplier(a_scale / twice_largest, &p.a_multiplier, &p.a_shift);
  quantize_multiplier(b_scale / twice_largest, &p.b_multiplier, &p.b_shift);
  quantize_multiplier(twice_largest / (std::ldexp(1.0, left_shift) * y_scale), &p.output_multiplier, &p.output_shift);
  return p;
}

TEST(BinaryQ, AddsRealNumbers) {
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    BinaryQParams p = addition(0.02, 0.05, 0.06, 20);
    p.a_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
    p.b_zero_point = 3;
    p.output_zero_point = -7;
    const auto a = static_cast<std::int8_t>(random_int(random, -128, 127));
    const auto b = static_cast<std::int8_t>(random_int(random, -128, 127));
    const double real = 0.02 * (a - p.a_zero_point) + 0.05 * (b - p.b_zero_point);
    const Outcome y =
        run_reference(make_case(kBinaryQ, p, {tensor_of<std::int8_t>({1}, {a}), tensor_of<std::int8_t>({1}, {b})}));
    ASSERT_TRUE(y.status.ok());
    EXPECT_NEAR(y.outputs[0].values<std::int8_t>()[0], std::clamp(real / 0.06 - 7, -128.0, 127.0), 0.51);
  }
}

TEST(BinaryQ, SubtractsAndMultipliesSixteenBits) {
  BinaryQParams p = addition(0.001, 0.002, 0.002, 15);
  p.function = BinaryQFunction::kSub;
  p.minimum = -32768;
  p.maximum = 32767;
  const auto run = [](const BinaryQParams& params) {
    return run_reference(
               make_case(kBinaryQ, params,
                         {tensor_of<std::int16_t>({2}, {1000, -32768}), tensor_of<std::int16_t>({2}, {300, 32767})}))
        .outputs[0]
        .values<std::int16_t>();
  };
  EXPECT_EQ(run(p), (std::vector<std::int16_t>{200, -32768}));
  p.function = BinaryQFunction::kMul;
  quantize_multiplier(0.001 * 0.002 / 0.04, &p.output_multiplier, &p.output_shift);
  EXPECT_EQ(run(p), (std::vector<std::int16_t>{15, -32768}));
}

std::vector<std::int8_t> combined(const BinaryQParams& p, std::vector<std::int8_t> a, std::vector<std::int8_t> b) {
  const auto n = static_cast<std::int64_t>(a.size());
  return run_reference(make_case(kBinaryQ, p, {tensor_of({n}, a), tensor_of({n}, b)})).outputs[0].values<std::int8_t>();
}

TEST(BinaryQ, DividesRealNumbers) {
  BinaryQParams p;
  p.function = BinaryQFunction::kDiv;
  p.b_zero_point = -2;
  p.output_zero_point = 3;
  quantize_multiplier(0.1 / (0.05 * 0.04), &p.output_multiplier, &p.output_shift);
  // (a * 0.1) / ((b + 2) * 0.05) / 0.04 + 3.
  EXPECT_EQ(combined(p, {1, -3, 2, 0, 5}, {1, 8, -12, 77, -2}), (std::vector<std::int8_t>{20, -12, -7, 3, 127}));
}

TEST(BinaryQ, SquaresDifferencesAndBendsSlopes) {
  BinaryQParams p = addition(0.1, 0.1, 1, 7);
  p.function = BinaryQFunction::kSquaredDifference;
  quantize_multiplier(std::pow(0.2, 2) / std::ldexp(1.0, 14), &p.output_multiplier, &p.output_shift);
  EXPECT_EQ(combined(p, {50, 10, 0}, {0, 50, 0}), (std::vector<std::int8_t>{25, 16, 0}));
  BinaryQParams slope;
  slope.function = BinaryQFunction::kPrelu;
  quantize_multiplier(0.5, &slope.output_multiplier, &slope.output_shift);
  quantize_multiplier(0.125, &slope.a_multiplier, &slope.a_shift);
  EXPECT_EQ(combined(slope, {10, -16, -16}, {99, 2, -4}), (std::vector<std::int8_t>{5, -4, 8}));
}

TEST(BinaryQ, ComparesNumbersOnScalesOfTheirOwn) {
  BinaryQParams p;
  p.left_shift = 8;
  quantize_multiplier(0.5, &p.a_multiplier, &p.a_shift);
  quantize_multiplier(0.25, &p.b_multiplier, &p.b_shift);
  const auto holds = [&p](BinaryQFunction function) {
    p.function = function;
    const Outcome y = run_reference(
        make_case(kBinaryQ, p, {tensor_of<std::int8_t>({3}, {4, 4, 4}), tensor_of<std::int8_t>({3}, {7, 8, 9})}));
    EXPECT_EQ(y.outputs[0].desc().type, ElementType::kBool);
    return y.outputs[0].values<std::uint8_t>();
  };
  using B = std::vector<std::uint8_t>;
  EXPECT_EQ(holds(BinaryQFunction::kEqual), (B{0, 1, 0}));
  EXPECT_EQ(holds(BinaryQFunction::kNotEqual), (B{1, 0, 1}));
  EXPECT_EQ(holds(BinaryQFunction::kLess), (B{0, 0, 1}));
  EXPECT_EQ(holds(BinaryQFunction::kLessEqual), (B{0, 1, 1}));
  EXPECT_EQ(holds(BinaryQFunction::kGreater), (B{1, 0, 0}));
  EXPECT_EQ(holds(BinaryQFunction::kGreaterEqual), (B{1, 1, 0}));
}

TEST(BinaryQ, RefusesParametersOutsideTheType) {
  const TestTensor x = tensor_of<std::int8_t>({1}, {0});
  const auto code = [&x](auto change) {
    BinaryQParams p;
    change(p);
    return run_reference(make_case(kBinaryQ, p, {x, x})).status.code;
  };
  EXPECT_EQ(code([](BinaryQParams&) {}), StatusCode::kOk);
  EXPECT_EQ(code([](BinaryQParams& p) { p.a_zero_point = 128; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](BinaryQParams& p) { p.maximum = 200; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](BinaryQParams& p) { p.minimum = 100, p.maximum = 50; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](BinaryQParams& p) { p.left_shift = 31; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](BinaryQParams& p) { p.b_shift = -32; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code([](BinaryQParams& p) { p.output_multiplier = -1; }), StatusCode::kInvalidModel);
}

// Scales of few digits give many ties; ranges of sums may be wider than that of the result.
TEST(BinaryQ, SumsOfAllPairsMatchReferenceToTheBit) {
  expect_variants_match_reference(
      [](Random& random) {
        std::vector<std::int8_t> all(256);
        std::iota(all.begin(), all.end(), std::int8_t{-128});
        const bool ties = random() % 2 == 0;
        std::uniform_real_distribution<double> any(0.003, 0.03);
        const auto scale = [&] { return ties ? 0.01 * static_cast<double>(random_int(random, 1, 10)) : any(random); };
        BinaryQParams p = addition(scale(), scale(), scale(), 20);
        if (random() % 2 == 0) p.function = BinaryQFunction::kSub;
        p.a_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
        p.b_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
        p.output_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
        return make_case(kBinaryQ, p, {tensor_of<std::int8_t>({256, 1}, all), tensor_of<std::int8_t>({256}, all)});
      },
      {.cases = 60, .must_cover = {kBinaryQ.variants[0].name}});
}

TEST(BinaryQ, VariantsMatchReferenceToTheBit) {
  expect_variants_match_reference(
      [](Random& random) {
        constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kU8, ElementType::kI16};
        const ElementType type = kTypes[random() % 3];
        const bool is_unsigned = type == ElementType::kU8;
        const bool wild = random_int(random, 0, 3) == 0;
        BinaryQParams p = addition(std::exp(std::uniform_real_distribution<double>(-4, 0)(random)), 0.1, 0.15,
                                   type == ElementType::kI16 ? 15 : 20);
        p.function = static_cast<BinaryQFunction>(random() % static_cast<std::uint64_t>(BinaryQFunction::kCount));
        if (wild || p.function == BinaryQFunction::kMul) {
          p.output_multiplier =
              static_cast<std::int32_t>(random_int(random, 0, std::numeric_limits<std::int32_t>::max()));
          p.output_shift = static_cast<std::int32_t>(random_int(random, -12, wild ? 30 : 0));
        }
        p.a_zero_point = static_cast<std::int32_t>(random_int(random, is_unsigned ? 0 : -128, 127));
        p.b_zero_point = static_cast<std::int32_t>(random_int(random, is_unsigned ? 0 : -128, 127));
        p.output_zero_point = static_cast<std::int32_t>(random_int(random, is_unsigned ? 0 : -128, 127));
        p.minimum = static_cast<std::int32_t>(random_int(random, is_unsigned ? 0 : -128, 10));
        p.maximum = static_cast<std::int32_t>(random_int(random, 10, 127));
        const auto dims = random_dims(random, static_cast<int>(random_int(random, 0, 3)), 0, 21);
        auto b_dims = dims;
        if (!b_dims.empty() && random() % 2 == 0) b_dims[random() % b_dims.size()] = 1;
        if (!b_dims.empty() && random() % 3 == 0) b_dims.erase(b_dims.begin());
        return make_case(
            kBinaryQ, p,
            {random_tensor(type, dims, random, -32768, 32767), random_tensor(type, b_dims, random, -200, 255)});
      },
      {.cases = 200, .must_cover = {kBinaryQ.variants[0].name}});
}

}  // namespace
}  // namespace bantam::ops
