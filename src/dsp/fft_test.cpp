#include "dsp/fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

namespace bantam::dsp {
namespace {

struct alignas(RealFft::kAlignment) Aligned {
  std::byte bytes[RealFft::kAlignment];
};

std::vector<Aligned> memory_for(int n) { return std::vector<Aligned>(RealFft::bytes(n) / sizeof(Aligned)); }

std::span<std::byte> span_of(std::vector<Aligned>& blocks) {
  return {blocks.empty() ? nullptr : blocks.front().bytes, blocks.size() * sizeof(Aligned)};
}

std::vector<float> float_noise(int n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<float> samples(static_cast<std::size_t>(n));
  for (float& sample : samples) sample = uniform(random);
  return samples;
}

class Sizes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(RealFft, Sizes, testing::Values(2, 4, 6, 10, 16, 30, 60, 240, 400, 480, 512, 1024));

TEST_P(Sizes, AgreesWithTheDefinition) {
  const int n = GetParam();
  auto memory = memory_for(n);
  RealFft fft;
  ASSERT_TRUE(fft.place(n, span_of(memory)).ok());
  ASSERT_EQ(fft.bins(), n / 2 + 1);
  const std::vector<float> time = float_noise(n, 7);
  std::vector<std::complex<float>> spectrum(static_cast<std::size_t>(fft.bins()));
  fft.forward(time.data(), spectrum.data());
  for (int k = 0; k < fft.bins(); ++k) {
    std::complex<double> sum;
    for (int t = 0; t < n; ++t) {
      const double angle = -2.0 * std::numbers::pi * k * t / n;
      sum += static_cast<double>(time[static_cast<std::size_t>(t)]) *
             std::complex<double>(std::cos(angle), std::sin(angle));
    }
    EXPECT_NEAR(spectrum[static_cast<std::size_t>(k)].real(), sum.real(), 2e-5 * std::sqrt(n)) << "bin " << k;
    EXPECT_NEAR(spectrum[static_cast<std::size_t>(k)].imag(), sum.imag(), 2e-5 * std::sqrt(n)) << "bin " << k;
  }
}

TEST_P(Sizes, InverseUndoesForward) {
  const int n = GetParam();
  auto memory = memory_for(n);
  RealFft fft;
  ASSERT_TRUE(fft.place(n, span_of(memory)).ok());
  const std::vector<float> time = float_noise(n, 11);
  std::vector<std::complex<float>> spectrum(static_cast<std::size_t>(fft.bins()));
  std::vector<float> back(time.size());
  fft.forward(time.data(), spectrum.data());
  fft.inverse(spectrum.data(), back.data());
  for (std::size_t t = 0; t < time.size(); ++t) EXPECT_NEAR(back[t], time[t], 1e-5) << "sample " << t;
}

TEST(RealFft, RefusesSizesThatWouldNeedTheHeap) {
  for (int n : {-2, 0, 1, 7, 14, 22, 401, 65538, 1 << 30}) {
    EXPECT_EQ(RealFft::bytes(n), 0U) << n;
    EXPECT_EQ(RealFft().place(n, {}).code, StatusCode::kUnsupported) << n;
  }
}

TEST(RealFft, NeedsExactlyTheBytesItNames) {
  auto memory = memory_for(512);
  const std::span<std::byte> all = span_of(memory);
  RealFft fft;
  const Status short_by_one = fft.place(512, all.first(all.size() - 1));
  EXPECT_EQ(short_by_one.code, StatusCode::kArenaTooSmall);
  EXPECT_EQ(short_by_one.expected, static_cast<std::int64_t>(RealFft::bytes(512)));
  EXPECT_TRUE(fft.place(512, all).ok());

  memory.emplace_back();
  EXPECT_EQ(fft.place(512, span_of(memory).subspan(4)).code, StatusCode::kMisaligned);
}

}  // namespace
}  // namespace bantam::dsp
