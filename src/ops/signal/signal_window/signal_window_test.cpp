#include "ops/signal/signal_window/signal_window.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

using Samples = std::vector<std::int16_t>;

// The numbers of TensorFlow Lite Micro's window_test.cc.
TEST(SignalWindow, WeighsAndSaturates) {
  const Samples x{0x000, 0x100, 0x200, 0x300, 0x400, 0x500, 0x600, 0x700,
                  0x800, 0x900, 0xA00, 0xB00, 0xC00, 0xD00, 0xE00, 0xF00};
  const Samples y{0, 224, 416, 576, 704, 800, 864, 896, 896, 864, 800, 704, 576, 416, 224, 0};
  const Samples window(x.rbegin(), x.rend());
  const auto weighed = run_reference(
      make_case(kSignalWindow, SignalWindowParams{12}, {tensor_of({16}, x), constant(tensor_of({16}, window))}));
  EXPECT_EQ(weighed.outputs[0].values<std::int16_t>(), y);
  const auto saturated = run_reference(make_case(
      kSignalWindow, SignalWindowParams{8},
      {tensor_of<std::int16_t>({2, 2}, {1221, 9531, -9531, 371}), tensor_of<std::int16_t>({2}, {1323, 9100})}));
  EXPECT_EQ(saturated.outputs[0].values<std::int16_t>(), (Samples{6310, 32767, -32768, 13187}));
}

TEST(SignalWindow, RefusesPartsOfWindowsAndWrongShifts) {
  const auto status = [](std::int32_t shift, std::int64_t samples) {
    std::vector<TensorDesc> outputs;
    return infer_case(make_case(kSignalWindow, SignalWindowParams{shift},
                                {TestTensor(dense_desc(ElementType::kI16, {samples})),
                                 TestTensor(dense_desc(ElementType::kI16, {4}))}),
                      &outputs)
        .code;
  };
  EXPECT_EQ(status(0, 8), StatusCode::kOk);
  EXPECT_EQ(status(0, 6), StatusCode::kInvalidModel);
  EXPECT_EQ(status(32, 8), StatusCode::kInvalidModel);
  EXPECT_EQ(status(-1, 8), StatusCode::kInvalidModel);
}

TEST(SignalWindow, RunsInPlace) {
  expect_variants_match_reference(
      [](Random& random) {
        const std::int64_t size = random_int(random, 1, 9);
        return make_case(kSignalWindow, SignalWindowParams{static_cast<std::int32_t>(random_int(random, 0, 20))},
                         {random_tensor(ElementType::kI16, {random_int(random, 0, 5), size}, random, -32768, 32767),
                          random_tensor(ElementType::kI16, {size}, random, -32768, 32767)});
      },
      {.cases = 20});
}

}  // namespace
}  // namespace bantam::ops
