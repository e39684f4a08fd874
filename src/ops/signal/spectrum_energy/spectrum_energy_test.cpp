#include "ops/signal/spectrum_energy/spectrum_energy.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

// The numbers of TensorFlow Lite Micro's energy_test.cc.
TEST(SpectrumEnergy, SquaresTheBinsOfTheRangeOnly) {
  const std::vector<std::int16_t> x{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const auto energy = [&](std::int32_t begin, std::int32_t end) {
    return run_reference(make_case(kSpectrumEnergy, SpectrumEnergyParams{begin, end}, {tensor_of({16}, x)}));
  };
  using U = std::vector<std::uint32_t>;
  EXPECT_EQ(energy(2, 4).outputs[0].values<std::uint32_t>(), (U{0, 0, 61, 113, 0, 0, 0, 0}));
  EXPECT_EQ(energy(4, 8).outputs[0].values<std::uint32_t>(), (U{0, 0, 0, 0, 181, 265, 365, 481}));
  EXPECT_EQ(energy(4, 9).status.code, StatusCode::kInvalidModel);
  EXPECT_EQ(energy(-1, 4).status.code, StatusCode::kInvalidModel);
  EXPECT_EQ(energy(3, 2).status.code, StatusCode::kInvalidModel);
}

TEST(SpectrumEnergy, HoldsTheLargestEnergy) {
  const auto y = run_reference(
      make_case(kSpectrumEnergy, SpectrumEnergyParams{0, 1}, {tensor_of<std::int16_t>({2}, {-32768, -32768})}));
  EXPECT_EQ(y.outputs[0].values<std::uint32_t>(), std::vector<std::uint32_t>{0x80000000U});
}

TEST(SpectrumEnergy, RunsInPlace) {
  expect_variants_match_reference(
      [](Random& random) {
        const std::int64_t bins = random_int(random, 0, 20);
        const auto end = static_cast<std::int32_t>(random_int(random, 0, bins));
        return make_case(kSpectrumEnergy,
                         SpectrumEnergyParams{static_cast<std::int32_t>(random_int(random, 0, end)), end},
                         {random_tensor(ElementType::kI16, {2 * bins}, random, -32768, 32767)});
      },
      {.cases = 20});
}

}  // namespace
}  // namespace bantam::ops
