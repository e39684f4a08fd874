#include "ops/nn/softmax_q/softmax_q.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

/// The parameters TFLite derives for beta = 1.
SoftmaxQParams params_of(double scale, ElementType to) {
  int shift = 0;
  const double mantissa = std::frexp(std::min(scale * (1 << 26), 2147483647.0), &shift);
  return {.to = to,
          .input_multiplier = static_cast<std::int32_t>(std::lround(mantissa * 2147483648.0)),
          .input_left_shift = shift,
          .diff_min = -static_cast<std::int32_t>(std::floor(31.0 * (1 << 26) / static_cast<double>(1LL << shift)))};
}

template <typename Out, typename In>
std::vector<Out> softmax(const SoftmaxQParams& params, const std::vector<std::int64_t>& dims,
                         const std::vector<In>& x) {
  const Outcome y = run_reference(make_case(kSoftmaxQ, params, {tensor_of<In>(dims, x)}));
  EXPECT_TRUE(y.status.ok()) << y.status.message;
  return y.outputs.empty() ? std::vector<Out>{} : y.outputs[0].template values<Out>();
}

TEST(SoftmaxQ, EqualsTheFormatsReferenceToTheBit) {
  // Expected values computed with TensorFlow Lite's own fixed-point kernel.
  const std::vector<std::int8_t> x{-128, -20, 0, 7, 15, 20, 127, 118, 0, 1, 2, 3, 10, 9, -5, -10};
  const std::vector<std::int8_t> bytes{-128, -128, -128, -128, -128, -128, 54,   -54,
                                       -104, -102, -99,  -96,  -64,  -70,  -114, -119};
  const std::vector<std::int16_t> words{-32768, -32768, -32768, -32768, -32767, -32767, 13823,  -13825,
                                        -26716, -26079, -25376, -24599, -16317, -17882, -29097, -30542};
  EXPECT_EQ(softmax<std::int8_t>(params_of(0.1, ElementType::kI8), {2, 8}, x), bytes);
  EXPECT_EQ(softmax<std::int16_t>(params_of(0.1, ElementType::kI16), {2, 8}, x), words);
}

/// The tables of exp over [-10, 0] and of 1 / (1 + t) over [0, 1] without the correction that importers make.
std::vector<Operand> tables() {
  std::vector<std::int16_t> exponentials;
  std::vector<std::int16_t> reciprocals;
  for (int i = 0; i <= 512; ++i) {
    exponentials.push_back(static_cast<std::int16_t>(std::lround(32767 * std::exp(10.0 * (i / 512.0 - 1)))));
    reciprocals.push_back(static_cast<std::int16_t>(std::lround(32767 / (1 + i / 512.0))));
  }
  return {constant(tensor_of<std::int16_t>({513}, exponentials)),
          constant(tensor_of<std::int16_t>({513}, reciprocals))};
}

OpCase case16(const SoftmaxQParams& params, TestTensor x) {
  std::vector<Operand> operands{std::move(x)};
  for (Operand& table : tables()) operands.push_back(std::move(table));
  return make_case(kSoftmaxQ, params, std::move(operands));
}

SoftmaxQParams params16(double scale) {
  int shift = 0;
  const double mantissa = std::frexp(scale * 6553.5, &shift);
  return {.to = ElementType::kI16,
          .input_multiplier = static_cast<std::int32_t>(std::lround(mantissa * 2147483648.0)),
          .input_left_shift = shift};
}

TEST(SoftmaxQ, Int16ApproximatesTheRealFunction) {
  Random random(7);
  for (int round = 0; round < 50; ++round) {
    const TestTensor x = random_tensor(ElementType::kI16, {20}, random, -32768, 32767);
    const double scale = 0.00001 * static_cast<double>(random_int(random, 1, 100));
    const Outcome y = run_reference(case16(params16(scale), x));
    ASSERT_TRUE(y.status.ok()) << y.status.message;
    double sum = 0;
    for (const std::int16_t v : x.values<std::int16_t>()) sum += std::exp(scale * (v - 32768));
    for (std::size_t i = 0; i < 20; ++i)
      EXPECT_NEAR(y.outputs[0].values<std::int16_t>()[i] / 32768.0,
                  std::exp(scale * (x.values<std::int16_t>()[i] - 32768)) / sum, 1e-3);
  }
}

TEST(SoftmaxQ, TablesOfAnythingAreSafe) {
  Random random(8);
  expect_variants_match_reference([](Random& r) {
    SoftmaxQParams p = params16(0.0001);
    p.input_left_shift = static_cast<std::int32_t>(random_int(r, -31, 30));
    const auto table = [&] { return constant(random_tensor(ElementType::kI16, {513}, r, -32768, 32767)); };
    return make_case(kSoftmaxQ, p,
                     {random_tensor(ElementType::kI16, random_dims(r, 2, 0, 9), r, -32768, 32767), table(), table()});
  });
}

TEST(SoftmaxQ, TablesBelongToInt16) {
  std::vector<TensorDesc> outputs;
  const TestTensor wide = tensor_of<std::int16_t>({2}, {0, 1});
  const TestTensor narrow = tensor_of<std::int8_t>({2}, {0, 1});
  EXPECT_TRUE(infer_case(case16(params16(0.001), wide), &outputs).ok());
  EXPECT_FALSE(infer_case(make_case(kSoftmaxQ, params16(0.001), {wide}), &outputs).ok());
  EXPECT_FALSE(infer_case(case16(params_of(0.1, ElementType::kI8), narrow), &outputs).ok());
  EXPECT_FALSE(infer_case(make_case(kSoftmaxQ, params16(0.001), {wide, wide, wide}), &outputs).ok());
}

TEST(SoftmaxQ, LargeTensorsUseTheSameArithmetic) {
  Random random(4);
  const TestTensor x = random_tensor(ElementType::kU8, {40, 12}, random, 0, 255);
  const auto all = softmax<std::uint8_t>(params_of(0.05, ElementType::kU8), {40, 12}, x.values<std::uint8_t>());
  for (std::size_t r = 0; r < 40; ++r) {
    const auto values = x.values<std::uint8_t>();
    const std::vector<std::uint8_t> row(values.begin() + 12 * static_cast<std::ptrdiff_t>(r),
                                        values.begin() + 12 * static_cast<std::ptrdiff_t>(r + 1));
    const auto alone = softmax<std::uint8_t>(params_of(0.05, ElementType::kU8), {12}, row);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + 12 * static_cast<std::ptrdiff_t>(r))) << r;
  }
}

TEST(SoftmaxQ, ApproximatesTheRealFunction) {
  Random random(6);
  for (int round = 0; round < 50; ++round) {
    const std::vector<std::int8_t> x = random_tensor(ElementType::kI8, {20}, random, -128, 127).values<std::int8_t>();
    const auto y = softmax<std::int16_t>(params_of(0.07, ElementType::kI16), {20}, x);
    double sum = 0;
    for (const std::int8_t q : x) sum += std::exp(q * 0.07);
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(y[i] + 32768, std::min(65536 * std::exp(x[i] * 0.07) / sum, 65535.0), 3);
  }
}

TEST(SoftmaxQ, RowsBeyondTheAccumulatorAreDefined) {
  const std::vector<std::int8_t> x(5000, 3);
  EXPECT_EQ(softmax<std::int8_t>(params_of(0.1, ElementType::kI8), {5000}, x), std::vector<std::int8_t>(5000, -128));
  EXPECT_EQ(softmax<std::int8_t>(params_of(0.1, ElementType::kI8), {2, 0}, std::vector<std::int8_t>{}).size(), 0U);
}

/// Scales reach from those that tell all numbers of a row apart to those by which the largest takes all.
OpCase softmax_of_bytes(Random& random, const std::vector<std::int64_t>& dims) {
  const bool is_signed = random_int(random, 0, 1) == 0;
  const ElementType type = is_signed ? ElementType::kI8 : ElementType::kU8;
  const double scale = 0.001 * static_cast<double>(random_int(random, 1, random_int(random, 0, 1) == 0 ? 50 : 2000));
  const double lowest = is_signed ? -128 : 0;
  const auto spread = static_cast<double>(random_int(random, 0, 255));
  return make_case(kSoftmaxQ, params_of(scale, random_int(random, 0, 1) == 0 ? ElementType::kI16 : type),
                   {random_tensor(type, dims, random, lowest, lowest + spread)});
}

TEST(SoftmaxQ, VariantsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) { return softmax_of_bytes(random, random_dims(random, 3, 0, 30)); },
      {.cases = 200, .must_cover = {"i8__simd"}});
}

TEST(SoftmaxQ, LongRowsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        return softmax_of_bytes(random, {random_int(random, 1, 9), random_int(random, 200, 1100)});
      },
      {.cases = 50, .must_cover = {"i8__simd"}});
}

TEST(SoftmaxQ, AnyParametersAreSafe) {
  expect_variants_match_reference(
      [](Random& random) {
        const SoftmaxQParams p{.to = random_int(random, 0, 1) == 0 ? ElementType::kI8 : ElementType::kI16,
                               .input_multiplier = static_cast<std::int32_t>(random_int(random, 0, 0x7fffffff)),
                               .input_left_shift = static_cast<std::int32_t>(random_int(random, 0, 30)),
                               .diff_min = -static_cast<std::int32_t>(random_int(random, 0, 300))};
        return make_case(kSoftmaxQ, p,
                         {random_tensor(ElementType::kI8, {random_int(random, 1, 40), random_int(random, 1, 40)},
                                        random, -128, 127)});
      },
      {.cases = 100, .must_cover = {"i8__simd"}});
}

TEST(SoftmaxQ, RefusesHostileParameters) {
  std::vector<TensorDesc> outputs;
  const SoftmaxQParams good = params_of(0.1, ElementType::kI8);
  const TestTensor x = tensor_of<std::int8_t>({2}, {1, 2});
  const auto refused = [&](const SoftmaxQParams& p, const TestTensor& operand) {
    return !infer_case(make_case(kSoftmaxQ, p, {operand}), &outputs).ok();
  };
  const auto changed = [&](auto member, std::int32_t value) {
    SoftmaxQParams p = good;
    p.*member = value;
    return p;
  };
  EXPECT_FALSE(refused(good, x));
  EXPECT_TRUE(refused(changed(&SoftmaxQParams::input_left_shift, 31), x));
  EXPECT_TRUE(refused(changed(&SoftmaxQParams::input_left_shift, -1), x));
  EXPECT_TRUE(refused(changed(&SoftmaxQParams::input_multiplier, -1), x));
  EXPECT_TRUE(refused(changed(&SoftmaxQParams::diff_min, 1), x));
  EXPECT_TRUE(refused(good, tensor_of<std::uint8_t>({2}, {1, 2})));
  EXPECT_TRUE(refused(good, tensor_of<float>({2}, {1, 2})));
  EXPECT_TRUE(refused(good, tensor_of<std::int8_t>({}, {1})));
  SoftmaxQParams bad_type = good;
  bad_type.to.value = 99;
  EXPECT_TRUE(refused(bad_type, x));
}

}  // namespace
}  // namespace bantam::ops
