#include "ops/reduce/cumsum/cumsum.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

std::vector<std::int32_t> sums(CumsumParams params) {
  return run_reference(make_case(kCumsum, params, {tensor_of<std::int32_t>({2, 3}, {1, 2, 3, 4, 5, 6})}))
      .outputs[0]
      .values<std::int32_t>();
}

TEST(Cumsum, AddsAlongTheAxisInEitherDirection) {
  using I = std::vector<std::int32_t>;
  EXPECT_EQ(sums({1, 0, 0}), (I{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(sums({-2, 0, 0}), (I{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(sums({1, 1, 0}), (I{0, 1, 3, 0, 4, 9}));
  EXPECT_EQ(sums({1, 0, 1}), (I{6, 5, 3, 15, 11, 6}));
  EXPECT_EQ(sums({1, 1, 1}), (I{5, 3, 0, 11, 6, 0}));
}

TEST(Cumsum, RefusesAnAxisOutsideTheTensor) {
  const OpCase op_case = make_case(kCumsum, CumsumParams{1, 0, 0}, {tensor_of<float>({2}, {1, 2})});
  EXPECT_EQ(run_reference(op_case).status.code, StatusCode::kInvalidModel);
}

TEST(Cumsum, RunsInParallelAndInPlace) {
  expect_variants_match_reference(
      [](Random& random) {
        constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kF64, ElementType::kI32, ElementType::kI64};
        const auto dims = random_dims(random, 3, 0, 30);
        const CumsumParams params{static_cast<std::int32_t>(random_int(random, -3, 2)),
                                  static_cast<std::int32_t>(random() % 2), static_cast<std::int32_t>(random() % 2)};
        return make_case(kCumsum, params, {random_tensor(kTypes[random() % 4], dims, random, -9, 9)});
      },
      {.cases = 60, .must_cover = {kCumsum.variants[0].name}});
}

}  // namespace
}  // namespace bantam::ops
