#include "ops/signal/framer/framer.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

using Samples = std::vector<std::int16_t>;

/// Feeds hops to a framer and keeps its state.
class Stream {
 public:
  Stream(const FramerParams& params, std::int64_t rows, std::int32_t fill)
      : params_(params),
        queues_(TestTensor(dense_desc(ElementType::kI16, {rows, framer_capacity(params)}))),
        fill_(tensor_of<std::int32_t>({1}, {fill})) {
    queues_.set_values(Samples(static_cast<std::size_t>(rows * framer_capacity(params)), 0));
  }

  bool feed(const TestTensor& x, Samples* frames) {
    auto outcome = run_reference(make_case(kFramer, params_, {x, queues_, fill_}));
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.message;
    *frames = outcome.outputs[0].values<std::int16_t>();
    queues_ = outcome.outputs[2];
    fill_ = outcome.outputs[3];
    return outcome.outputs[1].values<std::uint8_t>()[0] != 0;
  }

 private:
  FramerParams params_;
  TestTensor queues_;
  TestTensor fill_;
};

TEST(Framer, FramesOverlapOnceThereAreEnoughSamples) {
  Stream stream({2, 5, 2, 0}, 1, 0);
  Samples frames;
  EXPECT_FALSE(stream.feed(tensor_of<std::int16_t>({2}, {1, 2}), &frames));
  EXPECT_FALSE(stream.feed(tensor_of<std::int16_t>({2}, {3, 4}), &frames));
  EXPECT_EQ(frames, (Samples{0, 0, 0, 0, 0}));
  EXPECT_TRUE(stream.feed(tensor_of<std::int16_t>({2}, {5, 6}), &frames));
  EXPECT_EQ(frames, (Samples{1, 2, 3, 4, 5}));
  EXPECT_TRUE(stream.feed(tensor_of<std::int16_t>({2}, {7, 8}), &frames));
  EXPECT_EQ(frames, (Samples{3, 4, 5, 6, 7}));
}

TEST(Framer, AFilledQueueGivesFramesAtOnceInEveryRow) {
  Stream stream({2, 3, 2, 0}, 2, 1);
  Samples frames;
  EXPECT_TRUE(stream.feed(tensor_of<std::int16_t>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), &frames));
  EXPECT_EQ(frames, (Samples{0, 1, 2, 2, 3, 4, 0, 5, 6, 6, 7, 8}));
}

TEST(Framer, TheFirstVectorStandsForThoseBeforeIt) {
  // Two channels, one vector before and one after, every second invoke.
  Stream stream({2, 6, 4, 1}, 1, -1);
  Samples frames;
  EXPECT_FALSE(stream.feed(tensor_of<std::int16_t>({2}, {1, 2}), &frames));
  EXPECT_TRUE(stream.feed(tensor_of<std::int16_t>({2}, {3, 4}), &frames));
  EXPECT_EQ(frames, (Samples{1, 2, 1, 2, 3, 4}));
  EXPECT_FALSE(stream.feed(tensor_of<std::int16_t>({2}, {5, 6}), &frames));
  EXPECT_TRUE(stream.feed(tensor_of<std::int16_t>({2}, {7, 8}), &frames));
  EXPECT_EQ(frames, (Samples{3, 4, 5, 6, 7, 8}));
}

TEST(Framer, ReportsAForgedFill) {
  for (const std::int32_t fill : {-2, 7, 1 << 30}) {
    const auto outcome =
        run_reference(make_case(kFramer, FramerParams{2, 5, 2, 0},
                                {tensor_of<std::int16_t>({2}, {1, 2}), tensor_of({1, 6}, Samples(6, 0)),
                                 tensor_of<std::int32_t>({1}, {fill})}));
    EXPECT_EQ(outcome.status.code, StatusCode::kOutOfRange) << fill;
  }
}

TEST(Framer, RefusesQueuesOfAnotherSize) {
  std::vector<TensorDesc> outputs;
  const auto code = [&](std::int64_t rows, std::int64_t capacity, FramerParams params) {
    return infer_case(make_case(kFramer, params,
                                {TestTensor(dense_desc(ElementType::kI16, {3, 4})),
                                 TestTensor(dense_desc(ElementType::kI16, {rows, capacity})),
                                 TestTensor(dense_desc(ElementType::kI32, {1}))}),
                      &outputs)
        .code;
  };
  EXPECT_EQ(code(3, 6, {2, 5, 2, 0}), StatusCode::kOk);
  EXPECT_EQ(code(2, 6, {2, 5, 2, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code(3, 5, {2, 5, 2, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code(3, 6, {0, 5, 2, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code(3, 6, {2, 5, 6, 0}), StatusCode::kInvalidModel);
}

TEST(Framer, RunsInPlace) {
  expect_variants_match_reference(
      [](Random& random) {
        const auto push = static_cast<std::int32_t>(random_int(random, 1, 4));
        const FramerParams params{push, static_cast<std::int32_t>(random_int(random, push, 9)), push, 0};
        const std::int64_t rows = random_int(random, 1, 3);
        return make_case(
            kFramer, params,
            {random_tensor(ElementType::kI16, {rows, push * random_int(random, 0, 3)}, random, -99, 99),
             random_tensor(ElementType::kI16, {rows, framer_capacity(params)}, random, -99, 99),
             tensor_of<std::int32_t>({1}, {static_cast<std::int32_t>(random_int(random, -1, params.frame - 1))})});
      },
      {.cases = 30});
}

}  // namespace
}  // namespace bantam::ops
