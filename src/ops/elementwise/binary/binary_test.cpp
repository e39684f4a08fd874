#include "ops/elementwise/binary/binary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

template <typename T>
Outcome combine(BinaryFunction function, const std::vector<T>& a, const std::vector<T>& b) {
  const auto n = static_cast<std::int64_t>(a.size());
  return run_reference(make_case(kBinary, BinaryParams{function, {}}, {tensor_of<T>({n}, a), tensor_of<T>({n}, b)}));
}

TEST(Binary, BroadcastsBothWays) {
  const Outcome y = run_reference(
      make_case(kBinary, BinaryParams{}, {tensor_of<float>({2, 1}, {1, 2}), tensor_of<float>({3}, {10, 20, 30})}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(y.outputs[0].desc().rank, 2);
  EXPECT_EQ(y.outputs[0].values<float>(), (std::vector<float>{11, 21, 31, 12, 22, 32}));
}

TEST(Binary, DividesIntegersLikeTheFormats) {
  using I = std::vector<std::int32_t>;
  const I a{7, -7, 7, -7};
  const I b{2, 2, -2, -2};
  EXPECT_EQ(combine<std::int32_t>(BinaryFunction::kDiv, a, b).outputs[0].values<std::int32_t>(), (I{3, -3, -3, 3}));
  EXPECT_EQ(combine<std::int32_t>(BinaryFunction::kFloorDiv, a, b).outputs[0].values<std::int32_t>(),
            (I{3, -4, -4, 3}));
  EXPECT_EQ(combine<std::int32_t>(BinaryFunction::kMod, a, b).outputs[0].values<std::int32_t>(), (I{1, 1, -1, -1}));
  EXPECT_EQ(combine<std::int32_t>(BinaryFunction::kFmod, a, b).outputs[0].values<std::int32_t>(), (I{1, -1, 1, -1}));
}

TEST(Binary, ReportsIntegerDivisionByZero) {
  for (const auto function :
       {BinaryFunction::kDiv, BinaryFunction::kMod, BinaryFunction::kFmod, BinaryFunction::kFloorDiv}) {
    EXPECT_EQ(combine<std::int64_t>(function, {1}, {0}).status.code, StatusCode::kOutOfRange);
  }
  EXPECT_EQ(combine<std::int32_t>(BinaryFunction::kPow, {0}, {-1}).status.code, StatusCode::kOutOfRange);
}

TEST(Binary, WrapsTheQuotientThatOverflows) {
  constexpr auto kLowest = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(combine<std::int32_t>(BinaryFunction::kDiv, {kLowest}, {-1}).outputs[0].values<std::int32_t>()[0], kLowest);
  EXPECT_EQ(combine<std::int32_t>(BinaryFunction::kMod, {kLowest}, {-1}).outputs[0].values<std::int32_t>()[0], 0);
}

TEST(Binary, RaisesToPowers) {
  using I = std::vector<std::int32_t>;
  EXPECT_EQ(
      combine<std::int32_t>(BinaryFunction::kPow, {3, 2, -1, 5}, {4, -1, -3, 0}).outputs[0].values<std::int32_t>(),
      (I{81, 0, -1, 1}));
  const Outcome mixed =
      run_reference(make_case(kBinary, BinaryParams{BinaryFunction::kPow, {}},
                              {tensor_of<float>({2}, {1.5F, 4.0F}), tensor_of<std::int64_t>({}, {2})}));
  EXPECT_EQ(mixed.outputs[0].values<float>(), (std::vector<float>{2.25F, 16.0F}));
}

TEST(Binary, ShiftsBeyondTheWidth) {
  using U = std::vector<std::uint8_t>;
  EXPECT_EQ(
      combine<std::uint8_t>(BinaryFunction::kShiftLeft, {1, 1, 0x81}, {3, 8, 1}).outputs[0].values<std::uint8_t>(),
      (U{8, 0, 2}));
  using I = std::vector<std::int8_t>;
  EXPECT_EQ(
      combine<std::int8_t>(BinaryFunction::kShiftRight, {-8, -8, 8}, {1, 100, -1}).outputs[0].values<std::int8_t>(),
      (I{-4, -1, 0}));
}

TEST(Binary, ComparesToBool) {
  const Outcome y = combine<float>(BinaryFunction::kLess, {1, 2, NAN}, {2, 2, 2});
  EXPECT_EQ(y.outputs[0].desc().type, ElementType::kBool);
  EXPECT_EQ(y.outputs[0].values<std::uint8_t>(), (std::vector<std::uint8_t>{1, 0, 0}));
}

TEST(Binary, MinAndMaxKeepNan) {
  const OpCase op_case = make_case(kBinary, BinaryParams{BinaryFunction::kMin, {}},
                                   {tensor_of<float>({4}, {NAN, 1, 2, 3}), tensor_of<float>({4}, {1, NAN, 1, 4})});
  for (const KernelVariant& variant : kBinary.variants) {
    if (!variant_supports(op_case, variant)) continue;
    const auto y = run_variant(op_case, variant).outputs[0].values<float>();
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1])) << variant.name;
    EXPECT_EQ(y[2], 1.0F);
    EXPECT_EQ(y[3], 3.0F);
  }
}

TEST(Binary, RefusesWhatDoesNotFit) {
  Random random(1);
  const auto code = [&random](BinaryParams params, ElementType a, ElementType b, std::int64_t n) {
    return run_reference(make_case(kBinary, params, {random_tensor(a, {2}, random), random_tensor(b, {n}, random)}))
        .status.code;
  };
  const BinaryParams add{};
  EXPECT_EQ(code(add, ElementType::kF32, ElementType::kI32, 2), StatusCode::kInvalidModel);
  EXPECT_EQ(code(add, ElementType::kF32, ElementType::kF32, 3), StatusCode::kInvalidModel);
  EXPECT_EQ(code(add, ElementType::kBool, ElementType::kBool, 2), StatusCode::kUnsupported);
  EXPECT_EQ(code({BinaryFunction::kCount, {}}, ElementType::kF32, ElementType::kF32, 2), StatusCode::kInvalidModel);
  EXPECT_EQ(code({BinaryFunction::kAdd, {UnaryFunction::kRelu, 0, 0}}, ElementType::kI32, ElementType::kI32, 2),
            StatusCode::kUnsupported);
  EXPECT_EQ(code({BinaryFunction::kAdd, {UnaryFunction::kExp, 0, 0}}, ElementType::kF32, ElementType::kF32, 2),
            StatusCode::kInvalidModel);
}

/// Shapes that broadcast: some dimensions of either operand become 1, leading ones vanish.
std::vector<std::int64_t> shrink(std::vector<std::int64_t> dims, Random& random) {
  for (std::int64_t& d : dims)
    if (random_int(random, 0, 3) == 0) d = 1;
  if (!dims.empty() && random_int(random, 0, 2) == 0)
    dims.erase(dims.begin(), dims.begin() + random_int(random, 0, static_cast<std::int64_t>(dims.size())));
  return dims;
}

TEST(Binary, VariantsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        constexpr BinaryFunction kFunctions[] = {
            BinaryFunction::kAdd, BinaryFunction::kSub, BinaryFunction::kMul,   BinaryFunction::kDiv,
            BinaryFunction::kMin, BinaryFunction::kMax, BinaryFunction::kPrelu, BinaryFunction::kSquaredDifference,
            BinaryFunction::kPow};
        constexpr UnaryFunction kActivations[] = {UnaryFunction::kIdentity, UnaryFunction::kRelu, UnaryFunction::kClip,
                                                  UnaryFunction::kSigmoid, UnaryFunction::kGelu};
        const BinaryParams params{kFunctions[random() % std::size(kFunctions)],
                                  {kActivations[random() % std::size(kActivations)], -0.5F, 0.5F}};
        const auto dims = random_dims(random, static_cast<int>(random_int(random, 0, 4)), 0, 9);
        const auto a = random_tensor(ElementType::kF32, shrink(dims, random), random, -2, 2);
        const auto b = random_tensor(ElementType::kF32, shrink(dims, random), random, 0.1, 2);
        return make_case(kBinary, params, {a, b});
      },
      {.cases = 200, .must_cover = {kBinary.variants[0].name}});
}

// A number for each channel of an image: rows that are copied side by side, up to more than are.
TEST(Binary, RowsThatShareAnOperandMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        constexpr BinaryFunction kFunctions[] = {BinaryFunction::kAdd, BinaryFunction::kSub, BinaryFunction::kPrelu};
        const BinaryParams params{kFunctions[random() % std::size(kFunctions)],
                                  {random_int(random, 0, 1) == 0 ? UnaryFunction::kIdentity : UnaryFunction::kRelu}};
        const std::int64_t channels = random_int(random, 1, random_int(random, 0, 3) == 0 ? 400 : 40);
        const auto pixels = random_tensor(ElementType::kF32, {1, random_int(random, 1, 60), 7, channels}, random);
        const auto numbers = random_tensor(ElementType::kF32, {channels}, random);
        return random_int(random, 0, 1) == 0 ? make_case(kBinary, params, {pixels, numbers})
                                             : make_case(kBinary, params, {numbers, pixels});
      },
      {.cases = 80, .must_cover = {kBinary.variants[0].name}});
}

TEST(Binary, ComparisonsMatchTheReferenceForEveryTypeAndBroadcast) {
  expect_variants_match_reference(
      [](Random& random) {
        constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kI8,  ElementType::kU8,
                                          ElementType::kI32, ElementType::kI64, ElementType::kBool};
        const ElementType type = kTypes[random() % std::size(kTypes)];
        const bool logic = type == ElementType::kBool;
        constexpr BinaryFunction kLogic[] = {BinaryFunction::kAnd, BinaryFunction::kOr, BinaryFunction::kXor,
                                             BinaryFunction::kEqual, BinaryFunction::kNotEqual};
        const auto comparison = static_cast<BinaryFunction>(random_int(
            random, static_cast<int>(BinaryFunction::kEqual), static_cast<int>(BinaryFunction::kGreaterEqual)));
        const BinaryParams params{logic ? kLogic[random() % std::size(kLogic)] : comparison, {}};
        const auto dims = random_dims(random, static_cast<int>(random_int(random, 0, 3)), 0, 70);
        const auto operand = [&] { return random_tensor(type, shrink(dims, random), random, 0, logic ? 1 : 3); };
        const auto a = operand();
        return make_case(kBinary, params, {a, operand()});
      },
      {.cases = 200, .must_cover = {"bool__simd"}});
}

TEST(Binary, IntegersOfAllSizesMatchTheReferenceForEveryBroadcast) {
  expect_variants_match_reference(
      [](Random& random) {
        constexpr BinaryFunction kFunctions[] = {
            BinaryFunction::kAdd, BinaryFunction::kSub,    BinaryFunction::kMul,   BinaryFunction::kMin,
            BinaryFunction::kMax, BinaryFunction::kBitAnd, BinaryFunction::kBitOr, BinaryFunction::kBitXor};
        const ElementType type = random() % 2 == 0 ? ElementType::kI32 : ElementType::kI64;
        const auto dims = random_dims(random, static_cast<int>(random_int(random, 0, 3)), 0, 70);
        // Products beyond 2^31, of which 64-bit ones are exact and others wrap.
        const auto operand = [&] { return random_tensor(type, shrink(dims, random), random, -2e9, 2e9); };
        const auto a = operand();
        return make_case(kBinary, BinaryParams{kFunctions[random() % std::size(kFunctions)], {}}, {a, operand()});
      },
      {.cases = 200, .must_cover = {"integer__simd"}});
}

TEST(Binary, PowersOfAllKindsOfNumbersAreThoseOfTheCLibrary) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> numbers = {0,        -0.0F, 1,      -1,        2,          -2,     3,       0.5F,
                                      -0.5F,    1.7F,  -1.7F,  1e30F,     1e-30F,     1e-42F, -1e-42F, 16777216,
                                      16777215, 1e-3F, 127.5F, kInfinity, -kInfinity, NAN};
  const auto n = static_cast<std::int64_t>(numbers.size());
  const OpCase op_case = make_case(kBinary, BinaryParams{BinaryFunction::kPow, {}},
                                   {tensor_of<float>({n, 1}, numbers), tensor_of<float>({1, n}, numbers)});
  for (const KernelVariant& variant : kBinary.variants) {
    if (!variant_supports(op_case, variant)) continue;
    const auto y = run_variant(op_case, variant).outputs[0].values<float>();
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float a = numbers[i / numbers.size()];
      const float b = numbers[i % numbers.size()];
      const float expected = std::pow(a, b);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(y[i])) << variant.name << ' ' << a << ' ' << b;
      } else {
        EXPECT_FLOAT_EQ(y[i], expected) << variant.name << ' ' << a << ' ' << b;
        EXPECT_EQ(std::signbit(y[i]), std::signbit(expected)) << variant.name << ' ' << a << ' ' << b;
      }
    }
  }
}

TEST(Binary, NothingComparesWithNan) {
  constexpr std::pair<BinaryFunction, double> kResults[] = {
      {BinaryFunction::kEqual, 0},     {BinaryFunction::kNotEqual, 1}, {BinaryFunction::kLess, 0},
      {BinaryFunction::kLessEqual, 0}, {BinaryFunction::kGreater, 0},  {BinaryFunction::kGreaterEqual, 0}};
  for (const auto& [function, expected] : kResults) {
    const OpCase op_case = make_case(kBinary, BinaryParams{function, {}},
                                     {tensor_of<float>({2}, {NAN, 1}), tensor_of<float>({2}, {1, NAN})});
    for (const KernelVariant& variant : kBinary.variants) {
      if (!variant_supports(op_case, variant)) continue;
      EXPECT_EQ(run_variant(op_case, variant).outputs[0].to_doubles(), std::vector<double>(2, expected))
          << variant.name;
    }
  }
}

TEST(Binary, ReferenceHandlesEveryType) {
  expect_variants_match_reference([](Random& random) {
    const auto type = static_cast<ElementType>(random_int(random, 1, static_cast<int>(ElementType::kBool)));
    const BinaryFunction function =
        type == ElementType::kBool
            ? BinaryFunction::kXor
            : static_cast<BinaryFunction>(random_int(random, 0, static_cast<int>(BinaryFunction::kPrelu)));
    const auto dims = random_dims(random, static_cast<int>(random_int(random, 0, 3)), 0, 5);
    return make_case(kBinary, BinaryParams{function, {}},
                     {random_tensor(type, shrink(dims, random), random, -9, 9),
                      random_tensor(type, shrink(dims, random), random, 1, 9)});
  });
}

}  // namespace
}  // namespace bantam::ops
