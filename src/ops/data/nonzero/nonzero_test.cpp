#include "ops/data/nonzero/nonzero.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

std::vector<std::int64_t> rows_of(const Outcome& outcome) { return outcome.outputs[0].values<std::int64_t>(); }
std::int64_t count_of(const Outcome& outcome) { return outcome.outputs[1].values<std::int64_t>()[0]; }

TEST(Nonzero, ListsCoordinatesAndFillsTheRestWithZeros) {
  const TestTensor x = tensor_of<std::int32_t>({2, 3}, {0, 7, 0, -1, 0, 2});
  const Outcome y = run_reference(make_case(kNonzero, NonzeroParams{5}, {x}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(count_of(y), 3);
  EXPECT_EQ(rows_of(y), (std::vector<std::int64_t>{0, 1, 1, 0, 1, 2, 0, 0, 0, 0}));
}

TEST(Nonzero, ZerosHaveTwoSignsAndNanIsNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const TestTensor x = tensor_of<float>({4}, {-0.0F, nan, 0.0F, 1e-45F});
  const Outcome y = run_reference(make_case(kNonzero, NonzeroParams{4}, {x}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(count_of(y), 2);
  EXPECT_EQ(rows_of(y), (std::vector<std::int64_t>{1, 3, 0, 0}));
}

TEST(Nonzero, TakesScalarsAndTensorsWithoutElements) {
  const Outcome scalar = run_reference(make_case(kNonzero, NonzeroParams{1}, {tensor_of<float>({}, {2})}));
  ASSERT_TRUE(scalar.status.ok());
  EXPECT_EQ(count_of(scalar), 1);
  const Outcome empty = run_reference(make_case(kNonzero, NonzeroParams{0}, {tensor_of<float>({0, 3}, {})}));
  ASSERT_TRUE(empty.status.ok());
  EXPECT_EQ(count_of(empty), 0);
}

TEST(Nonzero, FindsAsManyAsThereAreInEveryType) {
  Random random(5);
  for (const ElementType type :
       {ElementType::kF32, ElementType::kF16, ElementType::kBF16, ElementType::kF64, ElementType::kI8, ElementType::kU8,
        ElementType::kI16, ElementType::kI32, ElementType::kI64, ElementType::kU64, ElementType::kBool}) {
    const TestTensor x = random_tensor(type, {6, 7}, random, 0, 2);
    const auto elements = x.to_doubles();
    const Outcome y = run_reference(make_case(kNonzero, NonzeroParams{42}, {x}));
    ASSERT_TRUE(y.status.ok());
    const auto rows = rows_of(y);
    std::size_t found = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (elements[i] == 0) continue;
      EXPECT_EQ(rows[2 * found], static_cast<std::int64_t>(i / 7));
      EXPECT_EQ(rows[2 * found + 1], static_cast<std::int64_t>(i % 7));
      ++found;
    }
    EXPECT_EQ(count_of(y), static_cast<std::int64_t>(found)) << element_type_name(type);
  }
}

TEST(Nonzero, MoreThanThereIsRoomForIsAFault) {
  const TestTensor x = tensor_of<float>({3}, {1, 2, 3});
  const Outcome y = run_reference(make_case(kNonzero, NonzeroParams{2}, {x}));
  EXPECT_EQ(y.status.code, StatusCode::kOutOfRange);
  EXPECT_EQ(y.status.found, 3);
  EXPECT_EQ(y.status.expected, 2);
}

TEST(Nonzero, RefusesNegativeAndHugeCapacities) {
  const TestTensor x = tensor_of<float>({1, 1, 3}, {1, 2, 3});
  std::vector<TensorDesc> outputs;
  EXPECT_FALSE(infer_case(make_case(kNonzero, NonzeroParams{-1}, {x}), &outputs).ok());
  EXPECT_FALSE(infer_case(make_case(kNonzero, NonzeroParams{0x7fffffff}, {x}), &outputs).ok());
}

}  // namespace
}  // namespace bantam::ops
