#include "ops/data/reverse_sequence/reverse_sequence.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TEST(ReverseSequence, ExamplesOfTheStandard) {
  using V = std::vector<float>;
  // ONNX test_reversesequence_time and test_reversesequence_batch.
  const TestTensor x = tensor_of<float>({4, 4}, {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15});
  const Outcome time = run_reference(
      make_case(kReverseSequence, ReverseSequenceParams{1, 0}, {x, tensor_of<std::int64_t>({4}, {4, 3, 2, 1})}));
  EXPECT_EQ(time.outputs[0].values<float>(), (V{3, 6, 9, 12, 2, 5, 8, 13, 1, 4, 10, 14, 0, 7, 11, 15}));
  const TestTensor z = tensor_of<float>({4, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  const Outcome batch = run_reference(
      make_case(kReverseSequence, ReverseSequenceParams{0, 1}, {z, tensor_of<std::int64_t>({4}, {1, 2, 3, 4})}));
  EXPECT_EQ(batch.outputs[0].values<float>(), (V{0, 1, 2, 3, 5, 4, 6, 7, 10, 9, 8, 11, 15, 14, 13, 12}));
}

TEST(ReverseSequence, MovesWhatLiesBehindAndBetweenTheAxes) {
  Random random(5);
  const TestTensor x = random_tensor(ElementType::kI16, {3, 2, 4, 5}, random, -99, 99);
  const std::vector<std::int32_t> lengths{4, 0, 3};
  const Outcome y = run_reference(
      make_case(kReverseSequence, ReverseSequenceParams{0, 2}, {x, tensor_of<std::int32_t>({3}, lengths)}));
  const auto before = x.values<std::int16_t>();
  const auto after = y.outputs[0].values<std::int16_t>();
  for (std::size_t b = 0; b < 3; ++b)
    for (std::size_t j = 0; j < 2; ++j)
      for (std::size_t t = 0; t < 4; ++t)
        for (std::size_t k = 0; k < 5; ++k) {
          const auto length = static_cast<std::size_t>(lengths[b]);
          const std::size_t source = t < length ? length - 1 - t : t;
          EXPECT_EQ(after[((b * 2 + j) * 4 + t) * 5 + k], before[((b * 2 + j) * 4 + source) * 5 + k]);
        }
}

TEST(ReverseSequence, LengthsOutsideTheAxisAreFaults) {
  for (const std::int64_t length : {-1, 3}) {
    const Outcome y =
        run_reference(make_case(kReverseSequence, ReverseSequenceParams{0, 1},
                                {tensor_of<float>({1, 2}, {1, 2}), tensor_of<std::int64_t>({1}, {length})}));
    EXPECT_EQ(y.status.code, StatusCode::kOutOfRange) << length;
  }
}

TEST(ReverseSequence, RefusesAxesAndLengthsThatDoNotFit) {
  std::vector<TensorDesc> outputs;
  const auto refused = [&](std::int32_t batch, std::int32_t time, std::int64_t lengths) {
    return !infer_case(make_case(kReverseSequence, ReverseSequenceParams{batch, time},
                                 {tensor_of<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
                                  TestTensor(dense_desc(ElementType::kI64, {lengths}))}),
                       &outputs)
                .ok();
  };
  EXPECT_FALSE(refused(0, 1, 2));
  EXPECT_FALSE(refused(1, 0, 3));
  EXPECT_TRUE(refused(0, 0, 2));
  EXPECT_TRUE(refused(0, 2, 2));
  EXPECT_TRUE(refused(-1, 1, 2));
  EXPECT_TRUE(refused(0, 1, 3));
}

}  // namespace
}  // namespace bantam::ops
