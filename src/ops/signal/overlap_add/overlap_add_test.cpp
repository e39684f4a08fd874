#include "ops/signal/overlap_add/overlap_add.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

// The numbers of TensorFlow Lite Micro's overlap_add_test.cc.
TEST(OverlapAdd, SumsWhatOverlaps) {
  const auto outcome = run_reference(
      make_case(kOverlapAdd, OverlapAddParams{1},
                {tensor_of<std::int16_t>({4, 3}, {125, -12, -895, 1000, 65, -212, 63, 71, 52, 1, -17, 32}),
                 tensor_of<std::int16_t>({1, 3}, {0, 0, 0})}));
  EXPECT_EQ(outcome.outputs[0].values<std::int16_t>(), (std::vector<std::int16_t>{125, 988, -767, -140}));
  EXPECT_EQ(outcome.outputs[1].values<std::int16_t>(), (std::vector<std::int16_t>{35, 32, 0}));
}

TEST(OverlapAdd, SaturatesAndKeepsRowsApart) {
  const auto outcome = run_reference(make_case(kOverlapAdd, OverlapAddParams{2},
                                               {tensor_of<std::int16_t>({2, 1, 2}, {30000, -30000, 5, 6}),
                                                tensor_of<std::int16_t>({2, 2}, {30000, -30000, 1, 1})}));
  EXPECT_EQ(outcome.outputs[0].values<std::int16_t>(), (std::vector<std::int16_t>{32767, -32768, 6, 7}));
  EXPECT_EQ(outcome.outputs[1].values<std::int16_t>(), (std::vector<std::int16_t>{0, 0, 0, 0}));
}

TEST(OverlapAdd, RefusesWrongSteps) {
  const auto code = [](std::int32_t step) {
    return run_reference(make_case(kOverlapAdd, OverlapAddParams{step},
                                   {tensor_of<float>({1, 2}, {1, 2}), tensor_of<float>({1, 2}, {0, 0})}))
        .status.code;
  };
  EXPECT_EQ(code(2), StatusCode::kOk);
  EXPECT_EQ(code(3), StatusCode::kInvalidModel);
  EXPECT_EQ(code(0), StatusCode::kInvalidModel);
}

TEST(OverlapAdd, RunsInPlace) {
  expect_variants_match_reference(
      [](Random& random) {
        const ElementType type = random() % 2 == 0 ? ElementType::kI16 : ElementType::kF32;
        const std::int64_t rows = random_int(random, 1, 3);
        const std::int64_t frame = random_int(random, 1, 7);
        return make_case(kOverlapAdd, OverlapAddParams{static_cast<std::int32_t>(random_int(random, 1, frame))},
                         {random_tensor(type, {rows, random_int(random, 0, 3), frame}, random, -30000, 30000),
                          random_tensor(type, {rows, frame}, random, -30000, 30000)});
      },
      {.cases = 30});
}

}  // namespace
}  // namespace bantam::ops
