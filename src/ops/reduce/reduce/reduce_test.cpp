#include "ops/reduce/reduce/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

std::vector<float> reduce(ReduceFunction function, IntList axes, const TestTensor& x) {
  return run_reference(make_case(kReduce, ReduceParams{function, axes, 0}, {x})).outputs[0].values<float>();
}

TEST(Reduce, HasTheValuesOfTheFunctions) {
  const TestTensor x = tensor_of<float>({2, 2}, {1, -2, 3, 4});
  const IntList inner{1, {1}};
  using F = std::vector<float>;
  EXPECT_EQ(reduce(ReduceFunction::kSum, inner, x), (F{-1, 7}));
  EXPECT_EQ(reduce(ReduceFunction::kSum, {1, {0}}, x), (F{4, 2}));
  EXPECT_EQ(reduce(ReduceFunction::kSum, {2, {0, 1}}, x), (F{6}));
  EXPECT_EQ(reduce(ReduceFunction::kSum, {}, x), (F{1, -2, 3, 4}));
  EXPECT_EQ(reduce(ReduceFunction::kMean, inner, x), (F{-0.5F, 3.5F}));
  EXPECT_EQ(reduce(ReduceFunction::kMax, inner, x), (F{1, 4}));
  EXPECT_EQ(reduce(ReduceFunction::kMin, inner, x), (F{-2, 3}));
  EXPECT_EQ(reduce(ReduceFunction::kProd, inner, x), (F{-2, 12}));
  EXPECT_EQ(reduce(ReduceFunction::kL1, inner, x), (F{3, 7}));
  EXPECT_EQ(reduce(ReduceFunction::kL2, {1, {1}}, tensor_of<float>({1, 2}, {3, 4})), (F{5}));
  EXPECT_EQ(reduce(ReduceFunction::kSumSquare, inner, x), (F{5, 25}));
  EXPECT_NEAR(reduce(ReduceFunction::kLogSumExp, inner, x)[1], 4.3132617F, 1e-6F);
  EXPECT_NEAR(reduce(ReduceFunction::kLogSum, inner, x)[1], std::log(7.0F), 1e-6F);
}

TEST(Reduce, GivesTheIdentityForNoElements) {
  const TestTensor x(dense_desc(ElementType::kF32, {1, 0}));
  const IntList inner{1, {1}};
  EXPECT_EQ(reduce(ReduceFunction::kSum, inner, x), std::vector<float>{0});
  EXPECT_EQ(reduce(ReduceFunction::kProd, inner, x), std::vector<float>{1});
  EXPECT_EQ(reduce(ReduceFunction::kMax, inner, x), std::vector<float>{-INFINITY});
  EXPECT_EQ(reduce(ReduceFunction::kMin, inner, x), std::vector<float>{INFINITY});
  EXPECT_TRUE(std::isnan(reduce(ReduceFunction::kMean, inner, x)[0]));
}

TEST(Reduce, KeepsDimensionsWhenAsked) {
  const TestTensor x = tensor_of<std::int8_t>({2, 2, 1}, {100, 100, 3, -4});
  const Outcome y = run_reference(make_case(kReduce, ReduceParams{ReduceFunction::kSum, {2, {1, 2}}, 1}, {x}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(describe(y.outputs[0].desc()), "i8[2,1,1]");
  EXPECT_EQ(y.outputs[0].values<std::int8_t>(), (std::vector<std::int8_t>{-56, -1}));
}

TEST(Reduce, TellsAnyAndAll) {
  const TestTensor x = tensor_of<Bool8>({2, 2}, {{1}, {0}, {1}, {1}});
  const auto run = [&x](ReduceFunction function) {
    return run_reference(make_case(kReduce, ReduceParams{function, {1, {1}}, 0}, {x}))
        .outputs[0]
        .values<std::uint8_t>();
  };
  EXPECT_EQ(run(ReduceFunction::kAny), (std::vector<std::uint8_t>{1, 1}));
  EXPECT_EQ(run(ReduceFunction::kAll), (std::vector<std::uint8_t>{0, 1}));
}

TEST(Reduce, RefusesBadAxes) {
  const TestTensor x = tensor_of<float>({2, 2}, {1, -2, 3, 4});
  for (const IntList& axes :
       {IntList{1, {2}}, IntList{1, {-1}}, IntList{2, {1, 1}}, IntList{2, {1, 0}}, IntList{9, {}}, IntList{-1, {}}}) {
    const OpCase op_case = make_case(kReduce, ReduceParams{ReduceFunction::kSum, axes, 0}, {x});
    EXPECT_EQ(run_reference(op_case).status.code, StatusCode::kInvalidModel);
  }
}

TEST(Reduce, AddsElementAfterElementWhenSequential) {
  // From 2^24 on, adding 1 to a float changes nothing: only a sum in this order stays where it is.
  constexpr std::int64_t kTerms = 600;
  std::vector<float> rows(3 * kTerms, 1.0F);
  std::vector<float> columns(3 * kTerms, 1.0F);
  for (std::int64_t i = 0; i < 3; ++i) {
    rows[static_cast<std::size_t>(i * kTerms)] = 16777216.0F;
    columns[static_cast<std::size_t>(i)] = 16777216.0F;
  }
  const ReduceParams across{ReduceFunction::kSum, {1, {1}}, 0, 1};
  const ReduceParams down{ReduceFunction::kSum, {1, {0}}, 0, 1};
  for (const OpCase& op_case : {make_case(kReduce, across, {tensor_of<float>({3, kTerms}, rows)}),
                                make_case(kReduce, down, {tensor_of<float>({kTerms, 3}, columns)})})
    for (const KernelVariant& variant : kReduce.variants) {
      if (!variant_supports(op_case, variant)) continue;
      EXPECT_EQ(run_variant(op_case, variant).outputs[0].values<float>(), std::vector<float>(3, 16777216.0F))
          << variant.name;
    }
}

TEST(Reduce, VariantsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kF32, ElementType::kI8,
                                          ElementType::kI64, ElementType::kF64, ElementType::kU16};
        // Those that every type has come first.
        constexpr ReduceFunction kFunctions[] = {
            ReduceFunction::kSum, ReduceFunction::kMean, ReduceFunction::kMax,       ReduceFunction::kMin,
            ReduceFunction::kL1,  ReduceFunction::kL2,   ReduceFunction::kSumSquare, ReduceFunction::kProd};
        const ElementType type = kTypes[random() % 6];
        const ReduceFunction function = kFunctions[random_int(random, 0, is_float(type) ? 7 : 3)];
        const bool large = random_int(random, 0, 9) == 0;
        const auto dims = large ? std::vector<std::int64_t>{3, 700, 37}
                                : random_dims(random, static_cast<int>(random_int(random, 0, 4)), 0, 17);
        IntList axes;
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(dims.size()); ++i)
          if (random() % 2 == 0) axes.v[axes.size++] = i;
        // Mostly positive terms: the bound is relative to the sums, which must not cancel.
        const auto keep_dims = static_cast<std::int32_t>(random() % 2);
        return make_case(kReduce, ReduceParams{function, axes, keep_dims, static_cast<std::int32_t>(random() % 2)},
                         {random_tensor(type, dims, random, -0.2, 1)});
      },
      {.cases = 200, .must_cover = {kReduce.variants[0].name}});
}

TEST(Reduce, ProductsOfLargeAndSmallNumbersStayInRange) {
  std::vector<float> values;
  for (int i = 0; i < 100; ++i) values.insert(values.end(), {0x1p60F, 0x1p-60F});
  const OpCase op_case =
      make_case(kReduce, ReduceParams{ReduceFunction::kProd, {1, {1}}, 0}, {tensor_of<float>({1, 200}, values)});
  for (const KernelVariant& variant : kReduce.variants) {
    if (!variant_supports(op_case, variant)) continue;
    EXPECT_EQ(run_variant(op_case, variant).outputs[0].values<float>(), std::vector<float>{1}) << variant.name;
  }
}

TEST(Reduce, LogarithmsOfSumsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        const bool logs_powers = random() % 4 != 0;
        const bool large = random_int(random, 0, 5) == 0;
        const auto dims = large ? std::vector<std::int64_t>{2, random_int(random, 1, 1500), random_int(random, 1, 150)}
                                : random_dims(random, static_cast<int>(random_int(random, 1, 4)), 1, 40);
        ReduceParams p{logs_powers ? ReduceFunction::kLogSumExp : ReduceFunction::kLogSum};
        p.keep_dims = static_cast<std::int32_t>(random() % 2);
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(dims.size()); ++i)
          if (random() % 2 == 0) p.axes.v[p.axes.size++] = i;
        // Far from what has a sum near 1, whose logarithm cancels.
        const double least = logs_powers ? static_cast<double>(random_int(random, -300, 300)) : 2;
        return make_case(kReduce, p, {random_tensor(ElementType::kF32, dims, random, least, least + 30)});
      },
      {.cases = 200, .must_cover = {"f32__simd", "f32_log_sum_exp__simd"}});
}

TEST(Reduce, LogarithmsOfSumsTakeInfinitiesAndWhatIsNoNumber) {
  constexpr float kSpecial[] = {INFINITY, -INFINITY, NAN};
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    const std::vector<std::int64_t> dims = {random_int(random, 1, 70), random_int(random, 1, 70)};
    auto values = random_tensor(ElementType::kF32, dims, random, 10, 20).values<float>();
    if (round % 4 == 0) std::ranges::fill(values, -INFINITY);
    for (std::int64_t i = random_int(random, 0, 5); i > 0; --i)
      values[random() % values.size()] = kSpecial[random() % 3];
    const ReduceParams params{ReduceFunction::kLogSumExp, {1, {static_cast<std::int32_t>(random() % 2)}}, 0};
    const OpCase op_case = make_case(kReduce, params, {tensor_of<float>(dims, values)});
    const Outcome expected = run_reference(op_case);
    for (const KernelVariant& variant : kReduce.variants) {
      if (!variant_supports(op_case, variant)) continue;
      EXPECT_EQ(compare(run_variant(op_case, variant).outputs[0], expected.outputs[0], variant.accuracy), "")
          << variant.name << " round " << round;
    }
  }
}

TEST(Reduce, ExtremesOfWhatIsNoNumberAreNone) {
  Random random(5);
  for (int round = 0; round < 60; ++round) {
    const std::vector<std::int64_t> dims = {random_int(random, 1, 70), random_int(random, 1, 70)};
    auto values = random_tensor(ElementType::kF32, dims, random).values<float>();
    for (std::int64_t i = random_int(random, 0, 3); i > 0; --i) values[random() % values.size()] = NAN;
    const ReduceFunction function = random() % 2 == 0 ? ReduceFunction::kMax : ReduceFunction::kMin;
    const IntList axes{1, {static_cast<std::int32_t>(random() % 2)}};
    const OpCase op_case = make_case(kReduce, ReduceParams{function, axes, 0}, {tensor_of<float>(dims, values)});
    const auto expected = run_reference(op_case).outputs[0].values<float>();
    for (const KernelVariant& variant : kReduce.variants) {
      if (!variant_supports(op_case, variant)) continue;
      const auto actual = run_variant(op_case, variant).outputs[0].values<float>();
      for (std::size_t i = 0; i < actual.size(); ++i)
        EXPECT_TRUE(actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i])))
            << variant.name << " round " << round << " result " << i << ": " << actual[i] << ", not " << expected[i];
    }
  }
}

TEST(Reduce, RowsGiveTheSameAloneAndAmongOthers) {
  Random random(6);
  for (int round = 0; round < 60; ++round) {
    const std::int64_t rows = random_int(random, 1, 50);
    const std::int64_t length = random_int(random, 1, round % 4 == 0 ? 5000 : 80);
    const auto values = random_tensor(ElementType::kF32, {rows, length}, random).values<float>();
    constexpr ReduceFunction kFunctions[] = {ReduceFunction::kSum, ReduceFunction::kMean, ReduceFunction::kL2};
    const ReduceParams params{kFunctions[random() % 3], {1, {1}}, 0};
    const KernelVariant& variant = kReduce.variants[0];
    const auto reduced = [&](std::int64_t first, std::int64_t count) {
      const auto from = values.begin() + first * length;
      const TestTensor some = tensor_of<float>({count, length}, std::vector<float>(from, from + count * length));
      return run_variant(make_case(kReduce, params, {some}), variant).outputs[0].values<float>();
    };
    const auto together = reduced(0, rows);
    for (std::int64_t row = 0; row < rows; ++row)
      EXPECT_EQ(reduced(row, 1)[0], together[static_cast<std::size_t>(row)])
          << "round " << round << ": row " << row << " of " << rows << " by " << length;
  }
}

TEST(Reduce, WideSumsHaveRoom) {
  const TestTensor x = tensor_of<std::int8_t>({2, 2}, {100, 100, -128, -128});
  const Outcome y = run_reference(make_case(kReduce, ReduceParams{.axes = {1, {1}}, .keep_dims = 0, .wide = 1}, {x}));
  EXPECT_EQ(y.outputs[0].values<std::int32_t>(), (std::vector<std::int32_t>{200, -256}));
  const OpCase of_floats =
      make_case(kReduce, ReduceParams{.axes = {1, {1}}, .wide = 1}, {tensor_of<float>({1, 1}, {1})});
  EXPECT_EQ(run_reference(of_floats).status.code, StatusCode::kUnsupported);
}

TEST(Reduce, WideSumsMatchReferenceExactly) {
  expect_variants_match_reference(
      [](Random& random) {
        constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kU8, ElementType::kI16};
        const bool large = random_int(random, 0, 3) == 0;
        const auto dims = large ? std::vector<std::int64_t>{2, random_int(random, 1, 80), random_int(random, 1, 300)}
                                : random_dims(random, static_cast<int>(random_int(random, 1, 4)), 0, 17);
        ReduceParams p{.keep_dims = static_cast<std::int32_t>(random() % 2), .wide = 1};
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(dims.size()); ++i)
          if (random() % 2 == 0) p.axes.v[p.axes.size++] = i;
        const ElementType type = kTypes[random() % 3];
        const double least = type == ElementType::kU8 ? 0 : -100;
        return make_case(kReduce, p, {random_tensor(type, dims, random, least, 100)});
      },
      {.cases = 200, .must_cover = {"i8_wide__simd"}});
}

TEST(Reduce, ExtremesOfBytesMatchReferenceExactly) {
  expect_variants_match_reference(
      [](Random& random) {
        const bool large = random_int(random, 0, 1) == 0;
        const auto dims = large ? std::vector<std::int64_t>{2, random_int(random, 1, 80), random_int(random, 1, 300)}
                                : random_dims(random, static_cast<int>(random_int(random, 1, 4)), 0, 17);
        ReduceParams p{random() % 2 == 0 ? ReduceFunction::kMax : ReduceFunction::kMin};
        p.keep_dims = static_cast<std::int32_t>(random() % 2);
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(dims.size()); ++i)
          if (random() % 2 == 0) p.axes.v[p.axes.size++] = i;
        const bool is_signed = random() % 2 == 0;
        return make_case(kReduce, p,
                         {random_tensor(is_signed ? ElementType::kI8 : ElementType::kU8, dims, random,
                                        is_signed ? -128 : 0, is_signed ? 127 : 255)});
      },
      {.cases = 200, .must_cover = {"i8_extremes__simd"}});
}

TEST(Reduce, VariantsMatchReferenceOnColumnsThatThreadsShare) {
  expect_variants_match_reference(
      [](Random& random) {
        constexpr ReduceFunction kFunctions[] = {ReduceFunction::kSum, ReduceFunction::kMean, ReduceFunction::kMax,
                                                 ReduceFunction::kMin, ReduceFunction::kL2};
        const std::vector<std::int64_t> dims = {1, random_int(random, 20, 60), random_int(random, 20, 60),
                                                random_int(random, 1, 200)};
        return make_case(kReduce, ReduceParams{kFunctions[random() % 5], {2, {1, 2}}, 1},
                         {random_tensor(ElementType::kF32, dims, random, -0.2, 1)});
      },
      {.cases = 20, .must_cover = {kReduce.variants[0].name}});
}

}  // namespace
}  // namespace bantam::ops
