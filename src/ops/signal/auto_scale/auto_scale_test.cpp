#include "ops/signal/auto_scale/auto_scale.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

// The numbers of TensorFlow Lite Micro's fft_test.cc; its search forgets what came before a -32768.
TEST(AutoScale, ShiftsAsFarAsNothingOverflows) {
  using I = std::vector<std::int16_t>;
  const auto scaled = [](const I& x) {
    return run_reference(make_case(kAutoScale, {tensor_of({static_cast<std::int64_t>(x.size())}, x)}));
  };
  const auto y = scaled({238, 113, -88, -243, -5, -130, 159, -70});
  EXPECT_EQ(y.outputs[0].values<std::int16_t>(), (I{30464, 14464, -11264, -31104, -640, -16640, 20352, -8960}));
  EXPECT_EQ(y.outputs[1].values<std::int32_t>(), std::vector<std::int32_t>{7});
  EXPECT_EQ(scaled({-32768}).outputs[1].values<std::int32_t>(), std::vector<std::int32_t>{0});
  EXPECT_EQ(scaled({-32768, 5}).outputs[1].values<std::int32_t>(), std::vector<std::int32_t>{12});
  EXPECT_EQ(scaled({0, 0}).outputs[1].values<std::int32_t>(), std::vector<std::int32_t>{15});
}

TEST(AutoScale, RunsInPlace) {
  expect_variants_match_reference(
      [](Random& random) {
        const double largest = static_cast<double>(std::int64_t{1} << random_int(random, 0, 15));
        return make_case(kAutoScale,
                         {random_tensor(ElementType::kI16, random_dims(random, 2, 0, 9), random, -largest, largest)});
      },
      {.cases = 20});
}

}  // namespace
}  // namespace bantam::ops
