#include "ops/signal/real_fft/real_fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "ops/testing/harness.h"
#include "signal/real_fft.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

template <typename T>
TestTensor twiddles(int n, bool inverse) {
  std::vector<signal::Complex<T>> table(signal::twiddle_count(n));
  signal::fill_twiddles(n, inverse, table.data());
  std::vector<T> scalars;
  for (const auto& c : table) scalars.insert(scalars.end(), {c.re, c.im});
  return tensor_of({static_cast<std::int64_t>(table.size()), 2}, scalars);
}

template <typename T>
Outcome transform(int n, bool inverse, const TestTensor& x) {
  return run_reference(make_case(kRealFft, RealFftParams{n, inverse ? 1 : 0}, {x, constant(twiddles<T>(n, inverse))}));
}

// Computed by KissFFT 130 with FIXED_POINT=16 and 32.
TEST(RealFft, IsKissFftsInFixedPoint) {
  const auto y16 = transform<std::int16_t>(
      12, false, tensor_of<std::int16_t>({12}, {1000, -2000, 3000, 32767, -32768, 7, 8, 9, -10, 11, 12000, 1}));
  EXPECT_EQ(
      y16.outputs[0].values<std::int16_t>(),
      (std::vector<std::int16_t>{1169, 0, 1927, 367, -1989, -1570, -3898, 2896, 3639, 1858, 2218, -5659, -3963, 0}));
  const auto x16 = transform<std::int16_t>(12, true, y16.outputs[0]);
  EXPECT_EQ(x16.outputs[0].values<std::int16_t>(),
            (std::vector<std::int16_t>{83, -166, 250, 2729, -2729, 0, 1, 0, -2, 1, 999, 0}));
  const auto y32 = transform<std::int32_t>(
      10, false, tensor_of<std::int32_t>({10}, {1 << 30, -2000, 3000, 2147483647, -2147483647, 7, 8, 9, -10, 11}));
  EXPECT_EQ(y32.outputs[0].values<std::int32_t>(),
            (std::vector<std::int32_t>{107374285, 0, 214748294, -78012077, -132722092, -78011898, 214748184, 330464121,
                                       347470405, -330463348, -322122049, 0}));
}

TEST(RealFft, IsTheTransformForEveryFactor) {
  for (const int n : {4, 6, 8, 10, 12, 18, 30, 50, 64, 120, 250, 512}) {
    SCOPED_TRACE(n);
    Random random(static_cast<std::uint64_t>(n));
    const TestTensor x = random_tensor(ElementType::kF32, {n}, random);
    const auto samples = x.values<float>();
    const auto spectrum = transform<float>(n, false, x).outputs[0];
    const auto bins = spectrum.values<float>();
    for (int k = 0; k <= n / 2; ++k) {
      std::complex<double> exact;
      for (int t = 0; t < n; ++t)
        exact += static_cast<double>(samples[static_cast<std::size_t>(t)]) * std::polar(1.0, -2 * M_PI * k * t / n);
      EXPECT_NEAR(static_cast<double>(bins[static_cast<std::size_t>(2 * k)]), exact.real(), 1e-4);
      EXPECT_NEAR(static_cast<double>(bins[static_cast<std::size_t>(2 * k + 1)]), exact.imag(), 1e-4);
    }
    const auto back = transform<float>(n, true, spectrum).outputs[0].values<float>();
    for (std::size_t t = 0; t < samples.size(); ++t) EXPECT_NEAR(back[t], samples[t], 1e-5F);
  }
}

TEST(RealFft, PadsShortRowsWithZeros) {
  const auto padded = transform<float>(8, false, tensor_of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  const auto whole =
      transform<float>(8, false, tensor_of<float>({2, 8}, {1, 2, 3, 0, 0, 0, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0}));
  EXPECT_EQ(padded.outputs[0].values<float>(), whole.outputs[0].values<float>());
}

TEST(RealFft, RefusesSizesItCannotDo) {
  const auto code = [](std::int32_t n, std::int64_t length, std::int64_t constants) {
    std::vector<TensorDesc> outputs;
    return infer_case(make_case(kRealFft, RealFftParams{n, 0},
                                {TestTensor(dense_desc(ElementType::kI16, {length})),
                                 TestTensor(dense_desc(ElementType::kI16, {constants, 2}))}),
                      &outputs)
        .code;
  };
  EXPECT_EQ(code(8, 8, 6), StatusCode::kOk);
  EXPECT_EQ(code(8, 9, 6), StatusCode::kInvalidModel);
  EXPECT_EQ(code(8, 8, 5), StatusCode::kInvalidModel);
  for (const std::int32_t n : {-4, 0, 2, 7, 14, 65538, 1 << 30})
    EXPECT_EQ(code(n, 1, 6), StatusCode::kUnsupported) << n;
}

}  // namespace
}  // namespace bantam::ops
