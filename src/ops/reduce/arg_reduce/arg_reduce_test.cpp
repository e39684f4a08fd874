#include "ops/reduce/arg_reduce/arg_reduce.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

TEST(ArgReduce, FindsFirstAndLastExtremes) {
  const TestTensor x = tensor_of<float>({2, 3}, {1, 5, 5, -2, -2, 7});
  const auto find = [&x](std::int32_t minimum, std::int32_t last) {
    const Outcome y =
        run_reference(make_case(kArgReduce, ArgReduceParams{minimum, 1, 1, last, ElementType::kI64}, {x}));
    return y.outputs[0].values<std::int64_t>();
  };
  EXPECT_EQ(find(0, 0), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(find(0, 1), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(find(1, 0), (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(find(1, 1), (std::vector<std::int64_t>{0, 1}));
}

TEST(ArgReduce, DropsTheAxisWhenAsked) {
  const TestTensor x = tensor_of<std::int8_t>({2, 3}, {1, 5, 5, -2, -2, 7});
  const Outcome y = run_reference(make_case(kArgReduce, ArgReduceParams{0, 0, 0, 0, ElementType::kI32}, {x}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(y.outputs[0].desc().rank, 1);
  EXPECT_EQ(y.outputs[0].values<std::int32_t>(), (std::vector<std::int32_t>{0, 0, 1}));
}

TEST(ArgReduce, TreatsNanAsTheExtreme) {
  const TestTensor x = tensor_of<float>({4}, {1, NAN, 9, NAN});
  const Outcome y = run_reference(make_case(kArgReduce, ArgReduceParams{0, 0, 1, 0, ElementType::kI32}, {x}));
  EXPECT_EQ(y.outputs[0].values<std::int32_t>(), (std::vector<std::int32_t>{1}));
}

TEST(ArgReduce, RefusesAnEmptyAxis) {
  const OpCase empty = make_case(kArgReduce, ArgReduceParams{0, 0, 1, 0, ElementType::kI32},
                                 {TestTensor(dense_desc(ElementType::kF32, {0, 2}))});
  EXPECT_EQ(run_reference(empty).status.code, StatusCode::kInvalidModel);
}

TEST(ArgReduce, WorksAlongEveryAxisInParallel) {
  expect_variants_match_reference(
      [](Random& random) {
        const ArgReduceParams params{static_cast<std::int32_t>(random() % 2),
                                     static_cast<std::int32_t>(random_int(random, -3, 2)), 1,
                                     static_cast<std::int32_t>(random() % 2), ElementType::kI64};
        constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kU8, ElementType::kI32, ElementType::kF32};
        return make_case(kArgReduce, params,
                         {random_tensor(kTypes[random() % 4], random_dims(random, 3, 1, 80), random, 0, 99)});
      },
      {.cases = 100});
}

TEST(ArgReduce, TheFirstNanIsTheExtremumOfEveryVariant) {
  for (const std::int64_t length : {3, 9, 70}) {
    for (const bool innermost : {true, false}) {
      std::vector<float> values(static_cast<std::size_t>(length), 1.0F);
      values[2] = NAN;
      if (length > 3) values[static_cast<std::size_t>(length) - 1] = NAN;
      std::vector<float> pair;  // inner size 2: the lines lie side by side
      for (const float value : values) pair.insert(pair.end(), {value, value});
      const TestTensor x = innermost ? tensor_of<float>({1, length}, values) : tensor_of<float>({length, 2}, pair);
      const OpCase op_case = make_case(kArgReduce, ArgReduceParams{0, innermost ? 1 : 0, 1, 0, ElementType::kI32}, {x});
      for (const KernelVariant& variant : kArgReduce.variants)
        for (const double place : run_variant(op_case, variant).outputs[0].to_doubles())
          EXPECT_EQ(place, 2.0) << variant.name << ' ' << length;
    }
  }
}

}  // namespace
}  // namespace bantam::ops
