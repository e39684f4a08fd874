#include "ops/elementwise/unary/unary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// f of one number by every variant that supports it; the reference is the last.
std::vector<float> values_of(UnaryFunction function, float x, float a = 0.0F, float b = 0.0F) {
  std::vector<float> results;
  const OpCase op_case = make_case(kUnary, UnaryParams{function, a, b}, {tensor_of<float>({1}, {x})});
  for (const KernelVariant& variant : kUnary.variants)
    if (variant_supports(op_case, variant))
      results.push_back(run_variant(op_case, variant).outputs[0].values<float>()[0]);
  return results;
}

void expect_value(UnaryFunction function, float x, float expected, float a = 0.0F, float b = 0.0F) {
  for (const float y : values_of(function, x, a, b)) {
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(y)) << kUnaryFunctionNames[static_cast<int>(function)] << "(" << x << ") = " << y;
    } else if (std::isinf(expected)) {
      EXPECT_EQ(y, expected) << kUnaryFunctionNames[static_cast<int>(function)] << "(" << x << ")";
    } else {
      EXPECT_NEAR(y, expected, 1e-6F * std::max(1e-3F, std::abs(expected)))
          << kUnaryFunctionNames[static_cast<int>(function)] << "(" << x << ")";
    }
  }
}

TEST(Unary, HasTheValuesOfTextbooks) {
  expect_value(UnaryFunction::kExp, 1.0F, 2.71828183F);
  expect_value(UnaryFunction::kLog, 10.0F, 2.30258509F);
  expect_value(UnaryFunction::kRound, 2.5F, 2.0F);
  expect_value(UnaryFunction::kRound, -3.5F, -4.0F);
  expect_value(UnaryFunction::kSign, -2.0F, -1.0F);
  expect_value(UnaryFunction::kTanh, 0.5F, 0.46211716F);
  expect_value(UnaryFunction::kErf, 0.5F, 0.52049988F);
  expect_value(UnaryFunction::kErf, -2.0F, -0.99532227F);
  expect_value(UnaryFunction::kSigmoid, -1.0F, 0.26894142F);
  expect_value(UnaryFunction::kClip, 9.0F, 6.0F, 0.0F, 6.0F);
  expect_value(UnaryFunction::kLeakyRelu, -2.0F, -0.2F, 0.1F);
  expect_value(UnaryFunction::kElu, -1.0F, -0.63212056F, 1.0F);
  expect_value(UnaryFunction::kSelu, -1.0F, -1.1113307F, 1.67326324F, 1.05070098F);
  expect_value(UnaryFunction::kCelu, -1.0F, -0.78693868F, 2.0F);
  expect_value(UnaryFunction::kSoftplus, 0.0F, 0.69314718F);
  expect_value(UnaryFunction::kSoftsign, -3.0F, -0.75F);
  expect_value(UnaryFunction::kHardSigmoid, 1.0F, 0.7F, 0.2F, 0.5F);
  expect_value(UnaryFunction::kHardSwish, 1.0F, 0.66666667F);
  expect_value(UnaryFunction::kMish, 1.0F, 0.86509839F);
  expect_value(UnaryFunction::kGelu, 1.0F, 0.84134475F);
  expect_value(UnaryFunction::kGelu, -3.0F, -0.0040496940F);
  expect_value(UnaryFunction::kGeluTanh, 1.0F, 0.84119199F);
  expect_value(UnaryFunction::kSilu, 1.0F, 0.73105858F);
  expect_value(UnaryFunction::kThresholdedRelu, 0.5F, 0.0F, 1.0F);
}

TEST(Unary, HasTheLimitsOfTheFunctions) {
  expect_value(UnaryFunction::kExp, kInfinity, kInfinity);
  expect_value(UnaryFunction::kExp, -kInfinity, 0.0F);
  expect_value(UnaryFunction::kExp, 89.0F, kInfinity);
  expect_value(UnaryFunction::kLog, 0.0F, -kInfinity);
  expect_value(UnaryFunction::kLog, -1.0F, kNan);
  expect_value(UnaryFunction::kLog, kInfinity, kInfinity);
  expect_value(UnaryFunction::kLog, 1e-40F, std::log(1e-40F));
  expect_value(UnaryFunction::kSigmoid, kInfinity, 1.0F);
  expect_value(UnaryFunction::kSigmoid, -kInfinity, 0.0F);
  expect_value(UnaryFunction::kTanh, -kInfinity, -1.0F);
  expect_value(UnaryFunction::kErf, kInfinity, 1.0F);
  expect_value(UnaryFunction::kSoftplus, kInfinity, kInfinity);
  expect_value(UnaryFunction::kMish, kInfinity, kInfinity);
  expect_value(UnaryFunction::kGelu, kInfinity, kInfinity);
  expect_value(UnaryFunction::kCelu, kInfinity, kInfinity, 2.0F);
  expect_value(UnaryFunction::kCelu, -kInfinity, -2.0F, 2.0F);
  expect_value(UnaryFunction::kSinh, 89.2F, std::sinh(89.2F));
  expect_value(UnaryFunction::kCosh, -kInfinity, kInfinity);
  expect_value(UnaryFunction::kAsinh, -1e30F, std::asinh(-1e30F));
  expect_value(UnaryFunction::kAcosh, -1e30F, kNan);
  expect_value(UnaryFunction::kAcosh, kInfinity, kInfinity);
  expect_value(UnaryFunction::kAtanh, -1.0F, -kInfinity);
  expect_value(UnaryFunction::kAtan, -kInfinity, -1.57079633F);
  expect_value(UnaryFunction::kAcos, -1.0F, 3.14159265F);
  expect_value(UnaryFunction::kAsin, 1.5F, kNan);
  expect_value(UnaryFunction::kSin, kInfinity, kNan);
}

TEST(Unary, TakesAnglesOfAnySize) {
  for (const float x : {-3.14159274F, 30.0F, -38999.0F, 1e6F, -1e30F}) {
    expect_value(UnaryFunction::kSin, x, static_cast<float>(std::sin(static_cast<double>(x))));
    expect_value(UnaryFunction::kCos, x, static_cast<float>(std::cos(static_cast<double>(x))));
    expect_value(UnaryFunction::kTan, x, static_cast<float>(std::tan(static_cast<double>(x))));
  }
}

// Neighbours are others where threads share the rows of a view.
TEST(Unary, AnglesDoNotDependOnTheirNeighbours) {
  for (const UnaryFunction function : {UnaryFunction::kSin, UnaryFunction::kCos, UnaryFunction::kTan}) {
    std::vector<float> x(64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.37F * static_cast<float>(i) - 11.0F;
    const auto values = [&] {
      std::vector<std::vector<float>> results;
      const OpCase op_case = make_case(kUnary, UnaryParams{function, 0, 0}, {tensor_of<float>({64}, x)});
      for (const KernelVariant& variant : kUnary.variants)
        if (variant_supports(op_case, variant))
          results.push_back(run_variant(op_case, variant).outputs[0].values<float>());
      return results;
    };
    const auto alone = values();
    for (std::size_t i = 0; i < x.size(); i += 4) x[i] = 1e9F;
    const auto beside = values();
    for (std::size_t v = 0; v < alone.size(); ++v)
      for (std::size_t i = 0; i < x.size(); ++i)
        if (i % 4 != 0) {
          EXPECT_EQ(alone[v][i], beside[v][i]) << kUnaryFunctionNames[static_cast<int>(function)] << " " << x[i];
        }
  }
}

TEST(Unary, GeluOfNegativeNumbersHasDigitsOfItsOwn) {
  std::vector<float> x;
  for (int i = 0; i <= 6000; ++i) x.push_back(static_cast<float>(i - 6000) / 1000);
  const OpCase op_case = make_case(kUnary, UnaryParams{UnaryFunction::kGelu},
                                   {tensor_of<float>({static_cast<std::int64_t>(x.size())}, x)});
  for (const KernelVariant& variant : kUnary.variants) {
    if (!variant_supports(op_case, variant)) continue;
    const auto y = run_variant(op_case, variant).outputs[0].values<float>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto exact = static_cast<double>(x[i]);
      const double expected = 0.5 * exact * std::erfc(-exact / std::sqrt(2.0));
      EXPECT_NEAR(y[i], expected, (x[i] > -3.0F ? 2e-6 : 6e-5) * std::abs(expected)) << variant.name << " of " << x[i];
    }
  }
}

TEST(Unary, LetsNanThrough) {
  for (int f = 0; f < static_cast<int>(UnaryFunction::kIsNan); ++f) {
    const auto function = static_cast<UnaryFunction>(f);
    if (function != UnaryFunction::kThresholdedRelu) expect_value(function, kNan, kNan, 0.5F, 1.0F);
  }
}

TEST(Unary, TellsNanAndInfinity) {
  const TestTensor x = tensor_of<float>({4}, {1.0F, kNan, kInfinity, -kInfinity});
  const auto run = [&x](UnaryFunction function, float a, float b) {
    return run_reference(make_case(kUnary, UnaryParams{function, a, b}, {x})).outputs[0].values<std::uint8_t>();
  };
  EXPECT_EQ(run(UnaryFunction::kIsNan, 0, 0), (std::vector<std::uint8_t>{0, 1, 0, 0}));
  EXPECT_EQ(run(UnaryFunction::kIsInf, 1, 1), (std::vector<std::uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ(run(UnaryFunction::kIsInf, 1, 0), (std::vector<std::uint8_t>{0, 0, 0, 1}));
}

TEST(Unary, EveryVariantTellsNanAndInfinity) {
  testing::expect_variants_match_reference(
      [](Random& random) {
        constexpr float kSpecial[] = {kNan, kInfinity, -kInfinity, -0.0F, 1.0F};
        std::vector<float> values(static_cast<std::size_t>(random_int(random, 1, 70)));
        for (float& value : values) value = kSpecial[random_int(random, 0, std::ssize(kSpecial) - 1)];
        const auto function = random_int(random, 0, 1) == 0 ? UnaryFunction::kIsNan : UnaryFunction::kIsInf;
        const UnaryParams p{function, static_cast<float>(random_int(random, 0, 1)),
                            static_cast<float>(random_int(random, 0, 1))};
        return make_case(kUnary, p, {tensor_of<float>({static_cast<std::int64_t>(values.size())}, values)});
      },
      {.cases = 40, .must_cover = {"f32__simd"}});
}

TEST(Unary, WrapsIntegers) {
  const auto run = [](UnaryFunction function, float a = 0, float b = 0) {
    const TestTensor x = tensor_of<std::int8_t>({3}, {-128, -3, 100});
    return run_reference(make_case(kUnary, UnaryParams{function, a, b}, {x})).outputs[0].values<std::int8_t>();
  };
  EXPECT_EQ(run(UnaryFunction::kAbs), (std::vector<std::int8_t>{-128, 3, 100}));
  EXPECT_EQ(run(UnaryFunction::kNeg), (std::vector<std::int8_t>{-128, 3, -100}));
  EXPECT_EQ(run(UnaryFunction::kSquare), (std::vector<std::int8_t>{0, 9, 16}));
  EXPECT_EQ(run(UnaryFunction::kClip, -1000, 50), (std::vector<std::int8_t>{-128, -3, 50}));
  EXPECT_EQ(run(UnaryFunction::kBitNot), (std::vector<std::int8_t>{127, 2, -101}));
}

TEST(Unary, RefusesFunctionsTheTypeDoesNotHave) {
  Random random(1);
  const auto code = [&random](UnaryFunction function, ElementType type) {
    const OpCase op_case = make_case(kUnary, UnaryParams{function, 0, 0}, {random_tensor(type, {2}, random)});
    return run_reference(op_case).status.code;
  };
  EXPECT_EQ(code(UnaryFunction::kExp, ElementType::kI32), StatusCode::kUnsupported);
  EXPECT_EQ(code(UnaryFunction::kNot, ElementType::kF32), StatusCode::kUnsupported);
  EXPECT_EQ(code(UnaryFunction::kNeg, ElementType::kI4), StatusCode::kUnsupported);
  EXPECT_EQ(code(static_cast<UnaryFunction>(-1), ElementType::kF32), StatusCode::kInvalidModel);
  EXPECT_EQ(code(UnaryFunction::kCount, ElementType::kF32), StatusCode::kInvalidModel);
}

class UnaryFunctions : public ::testing::TestWithParam<int> {};

TEST_P(UnaryFunctions, VariantsMatchReference) {
  const auto function = static_cast<UnaryFunction>(GetParam());
  expect_variants_match_reference(
      [function](Random& random) {
        const auto dims = random_dims(random, static_cast<int>(random_int(random, 0, 4)), 0, 13);
        const double width = std::pow(10.0, std::uniform_real_distribution<double>(-4.0, 1.9)(random));
        const double low = random_int(random, 0, 1) == 0 ? -width : 0.0;
        return make_case(kUnary, UnaryParams{function, 0.3F, 1.2F},
                         {random_tensor(ElementType::kF32, dims, random, low, width)});
      },
      {.cases = 40});
}

TEST_P(UnaryFunctions, RunOnLargeTensorsInParallel) {
  const auto function = static_cast<UnaryFunction>(GetParam());
  expect_variants_match_reference(
      [function](Random& random) {
        return make_case(kUnary, UnaryParams{function, 0.3F, 1.2F},
                         {random_tensor(ElementType::kF32, {3, random_int(random, 9000, 12000)}, random, -9, 9)});
      },
      {.cases = 2});
}

// Where rows lie apart, those of less than a vector are computed as one, some at a time.
TEST_P(UnaryFunctions, RunOnManyShortRows) {
  const auto function = static_cast<UnaryFunction>(GetParam());
  expect_variants_match_reference(
      [function](Random& random) {
        const auto rows = random_int(random, 1, 1500);
        return make_case(kUnary, UnaryParams{function, 0.3F, 1.2F},
                         {random_tensor(ElementType::kF32, {rows, random_int(random, 1, 18)}, random, -9, 9)});
      },
      {.cases = 8});
}

INSTANTIATE_TEST_SUITE_P(All, UnaryFunctions, ::testing::Range(0, static_cast<int>(UnaryFunction::kNot)),
                         [](const auto& suite) {
                           return std::string(kUnaryFunctionNames[static_cast<std::size_t>(suite.param)]);
                         });

}  // namespace
}  // namespace bantam::ops
