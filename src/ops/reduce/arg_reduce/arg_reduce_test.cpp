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
        return make_case(kArgReduce, params,
                         {random_tensor(ElementType::kU8, random_dims(random, 3, 1, 40), random, 0, 9)});
      },
      {.cases = 40});
}

}  // namespace
}  // namespace bantam::ops
