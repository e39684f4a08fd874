#include "ops/data/integers/integers.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

TEST(Integers, GivesItsParameters) {
  const Outcome row =
      run_reference(make_case(kIntegers, IntegersParams{{3, {7, -1, 0x7fffffff}}, {2, {1, 3}}, {}}, {}));
  EXPECT_FALSE(row.status.ok());  // the type is missing
  const Outcome y =
      run_reference(make_case(kIntegers, IntegersParams{{3, {7, -1, 0x7fffffff}}, {2, {1, 3}}, ElementType::kI64}, {}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(y.outputs[0].values<std::int64_t>(), (std::vector<std::int64_t>{7, -1, 0x7fffffff}));
  const Outcome scalar = run_reference(make_case(kIntegers, IntegersParams{{1, {5}}, {}, ElementType::kI32}, {}));
  ASSERT_TRUE(scalar.status.ok());
  EXPECT_EQ(scalar.outputs[0].values<std::int32_t>(), std::vector<std::int32_t>{5});
}

TEST(Integers, RefusesParametersThatContradictEachOther) {
  std::vector<TensorDesc> outputs;
  for (const IntegersParams& wrong :
       {IntegersParams{{2, {1, 2}}, {1, {3}}, ElementType::kI64}, IntegersParams{{-1, {}}, {}, ElementType::kI64},
        IntegersParams{{9, {}}, {1, {9}}, ElementType::kI64}, IntegersParams{{1, {1}}, {-2, {}}, ElementType::kI64},
        IntegersParams{{1, {1}}, {1, {-1}}, ElementType::kI64}, IntegersParams{{1, {1}}, {}, ElementType::kF32}})
    EXPECT_FALSE(infer_case(make_case(kIntegers, wrong, {}), &outputs).ok());
}

}  // namespace
}  // namespace bantam::ops
