#include "ops/data/unique/unique.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

using Indices = std::vector<std::int64_t>;

Indices result(const Outcome& outcome, std::size_t i) { return outcome.outputs[i].values<std::int64_t>(); }

TEST(Unique, OrdersAscendingOrAsMet) {
  const TestTensor x = tensor_of<float>({6}, {2, 1, 1, 3, 4, 3});
  const Outcome sorted = run_reference(make_case(kUnique, UniqueParams{0, 1, 6}, {x}));
  ASSERT_TRUE(sorted.status.ok());
  EXPECT_EQ(result(sorted, 0), (Indices{1, 0, 3, 4, 0, 0}));
  EXPECT_EQ(result(sorted, 1), (Indices{1, 0, 0, 2, 3, 2}));
  EXPECT_EQ(result(sorted, 2), (Indices{2, 1, 2, 1, 0, 0}));
  EXPECT_EQ(result(sorted, 3), (Indices{4}));
  const Outcome met = run_reference(make_case(kUnique, UniqueParams{0, 0, 4}, {x}));
  ASSERT_TRUE(met.status.ok());
  EXPECT_EQ(result(met, 0), (Indices{0, 1, 3, 4}));
  EXPECT_EQ(result(met, 1), (Indices{0, 1, 1, 2, 3, 2}));
  EXPECT_EQ(result(met, 2), (Indices{1, 2, 2, 1}));
}

TEST(Unique, ComparesSlicesAlongAnAxis) {
  const TestTensor x = tensor_of<std::int32_t>({2, 4}, {1, 0, 1, 0,  //
                                                        2, 3, 2, 1});
  const Outcome y = run_reference(make_case(kUnique, UniqueParams{1, 1, 4}, {x}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(result(y, 0), (Indices{3, 1, 0, 0}));
  EXPECT_EQ(result(y, 1), (Indices{2, 1, 2, 0}));
  EXPECT_EQ(result(y, 3), (Indices{3}));
}

TEST(Unique, NansAreOneAndComeLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const TestTensor x = tensor_of<float>({5}, {nan, 1, nan, -0.0F, 0.0F});
  const Outcome y = run_reference(make_case(kUnique, UniqueParams{0, 1, 5}, {x}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(result(y, 1), (Indices{2, 1, 2, 0, 0}));
  EXPECT_EQ(result(y, 3), (Indices{3}));
}

TEST(Unique, AgreesWithAMap) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    const std::int64_t n = random_int(random, 0, 60);
    const TestTensor x = random_tensor(ElementType::kI8, {n}, random, -9, 9);
    std::map<std::int8_t, std::pair<std::int64_t, std::int64_t>> expected;  // first, times
    const auto elements = x.values<std::int8_t>();
    for (std::size_t i = 0; i < elements.size(); ++i)
      ++expected.try_emplace(elements[i], static_cast<std::int64_t>(i), 0).first->second.second;
    const Outcome y =
        run_reference(make_case(kUnique, UniqueParams{0, 1, static_cast<std::int32_t>(expected.size())}, {x}));
    ASSERT_TRUE(y.status.ok());
    Indices first;
    Indices times;
    for (const auto& [value, found] : expected) {
      first.push_back(found.first);
      times.push_back(found.second);
    }
    EXPECT_EQ(result(y, 0), first);
    EXPECT_EQ(result(y, 2), times);
    const Indices inverse = result(y, 1);
    for (std::size_t i = 0; i < elements.size(); ++i)
      EXPECT_EQ(elements[static_cast<std::size_t>(first[static_cast<std::size_t>(inverse[i])])], elements[i]);
  }
}

TEST(Unique, MoreThanThereIsRoomForIsAFault) {
  const TestTensor x = tensor_of<float>({3}, {1, 2, 1});
  const Outcome y = run_reference(make_case(kUnique, UniqueParams{0, 1, 1}, {x}));
  EXPECT_EQ(y.status.code, StatusCode::kOutOfRange);
  EXPECT_EQ(y.status.found, 2);
}

TEST(Unique, RefusesWrongParameters) {
  const TestTensor x = tensor_of<float>({3}, {1, 2, 1});
  std::vector<TensorDesc> outputs;
  for (const UniqueParams& wrong : {UniqueParams{1, 1, 3}, UniqueParams{0, 2, 3}, UniqueParams{0, 1, -1}})
    EXPECT_FALSE(infer_case(make_case(kUnique, wrong, {x}), &outputs).ok());
}

}  // namespace
}  // namespace bantam::ops
