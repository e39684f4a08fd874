#include "ops/signal/scaled_log/scaled_log.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

// The numbers of TensorFlow Lite Micro's filter_bank_log_test.cc.
TEST(ScaledLog, SaturatesAndTakesSmallLevelsForOne) {
  const auto log = [](std::vector<std::uint32_t> x, std::int32_t scale, std::int32_t shift) {
    const auto n = static_cast<std::int64_t>(x.size());
    return run_reference(make_case(kScaledLog, ScaledLogParams{scale, shift}, {tensor_of({n}, x)}));
  };
  using I = std::vector<std::int16_t>;
  EXPECT_EQ(log({29, 21, 40, 19, 6, 2, 0}, 1600, 3).outputs[0].values<std::int16_t>(),
            (I{8715, 8198, 9229, 8038, 6194, 4436, 0}));
  EXPECT_EQ(log({48, 20, 19, 14, 0}, 32768, 5).outputs[0].values<std::int16_t>(), (I{32767, 15121, 13440, 3434, 0}));
  EXPECT_EQ(log({1}, 1600, 32).status.code, StatusCode::kInvalidModel);
  EXPECT_EQ(log({1}, -1, 0).status.code, StatusCode::kInvalidModel);
}

}  // namespace
}  // namespace bantam::ops
