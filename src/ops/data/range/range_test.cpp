#include "ops/data/range/range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

template <typename T>
OpCase range_case(T start, T limit, T delta) {
  return make_case(kRange, {constant(tensor_of<T>({}, {start})), constant(tensor_of<T>({}, {limit})),
                            constant(tensor_of<T>({}, {delta}))});
}

template <typename T>
std::vector<T> range(T start, T limit, T delta) {
  const Outcome y = run_reference(range_case(start, limit, delta));
  EXPECT_TRUE(y.status.ok()) << y.status.message;
  return y.outputs.empty() ? std::vector<T>{} : y.outputs[0].template values<T>();
}

TEST(Range, CountsUpAndDown) {
  EXPECT_EQ(range<float>(1, 5, 2), (std::vector<float>{1, 3}));
  EXPECT_EQ(range<std::int32_t>(10, 6, -3), (std::vector<std::int32_t>{10, 7}));
  EXPECT_EQ(range<std::int16_t>(0, 3, 1), (std::vector<std::int16_t>{0, 1, 2}));
  EXPECT_EQ(range<std::int64_t>(3, 3, 1), std::vector<std::int64_t>{});
  EXPECT_EQ(range<double>(0, 1, -1), std::vector<double>{});
}

TEST(Range, ExtremesDoNotOverflow) {
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(range<std::int64_t>(kMin, kMax, kMax), (std::vector<std::int64_t>{kMin, -1, kMax - 1}));
  EXPECT_EQ(range<std::int64_t>(kMax, kMin, kMin), (std::vector<std::int64_t>{kMax, -1}));
}

TEST(Range, RefusesEndlessAndHugeRanges) {
  std::vector<TensorDesc> outputs;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(infer_case(range_case<std::int32_t>(0, 5, 0), &outputs).ok());
  EXPECT_FALSE(infer_case(range_case<float>(0, 5, 0), &outputs).ok());
  EXPECT_FALSE(infer_case(range_case<float>(0, kNan, 1), &outputs).ok());
  EXPECT_FALSE(infer_case(range_case<float>(0, kInfinity, 1), &outputs).ok());
  EXPECT_FALSE(infer_case(range_case<float>(kInfinity, kInfinity, 1), &outputs).ok());
  EXPECT_FALSE(infer_case(range_case<std::int64_t>(0, std::numeric_limits<std::int64_t>::max(), 1), &outputs).ok());
  EXPECT_FALSE(infer_case(range_case<std::int8_t>(0, 5, 1), &outputs).ok());
  const TestTensor one = tensor_of<float>({}, {1});
  EXPECT_EQ(infer_case(make_case(kRange, {one, one, one}), &outputs).code, StatusCode::kUnsupported);
}

}  // namespace
}  // namespace bantam::ops
