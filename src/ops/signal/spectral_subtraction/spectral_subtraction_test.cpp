#include "ops/signal/spectral_subtraction/spectral_subtraction.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

SpectralSubtractionParams shares(std::int32_t clamping) {
  SpectralSubtractionParams p;
  p.smoothing = 655;
  p.one_minus_smoothing = 16384 - 655;
  p.alternate_smoothing = 1638;
  p.alternate_one_minus_smoothing = 16384 - 1638;
  p.min_signal_remaining = 819;
  p.smoothing_bits = 10;
  p.share_bits = 14;
  p.clamping = clamping;
  return p;
}

// Computed by TensorFlow Lite Micro's kernel with these options.
TEST(SpectralSubtraction, SmoothsTheEstimateAndLeavesAShare) {
  using U = std::vector<std::uint32_t>;
  const auto run = [](std::int32_t clamping) {
    return run_reference(make_case(kSpectralSubtraction, shares(clamping),
                                   {tensor_of<std::uint32_t>({4}, {322, 308, 0, 40000}),
                                    tensor_of<std::uint32_t>({4}, {0, 50000, 900000, 4000000000U})}));
  };
  const auto plain = run(0);
  EXPECT_EQ(plain.outputs[0].values<std::uint32_t>(), (U{309, 233, 0, 1999}));
  EXPECT_EQ(plain.outputs[1].values<std::uint32_t>(), (U{13181, 76532, 864019, 3604192656U}));
  EXPECT_EQ(run(1).outputs[1].values<std::uint32_t>(), (U{13181, 76532, 0, 40960000}));
}

TEST(SpectralSubtraction, RefusesWrongShares) {
  auto p = shares(0);
  p.share_bits = 32;
  const auto code = [](const SpectralSubtractionParams& params) {
    std::vector<TensorDesc> outputs;
    const auto u32 = [] { return TestTensor(dense_desc(ElementType::kU32, {3})); };
    return infer_case(make_case(kSpectralSubtraction, params, {u32(), u32()}), &outputs).code;
  };
  EXPECT_EQ(code(shares(1)), StatusCode::kOk);
  EXPECT_EQ(code(p), StatusCode::kInvalidModel);
  EXPECT_EQ(code(shares(2)), StatusCode::kInvalidModel);
}

TEST(SpectralSubtraction, RunsInPlace) {
  expect_variants_match_reference(
      [](Random& random) {
        const auto dims = random_dims(random, 1, 0, 20);
        return make_case(kSpectralSubtraction, shares(static_cast<std::int32_t>(random() % 2)),
                         {random_tensor(ElementType::kU32, dims, random, 0, 4e9),
                          random_tensor(ElementType::kU32, dims, random, 0, 4e9)});
      },
      {.cases = 20});
}

}  // namespace
}  // namespace bantam::ops
