#include "dsp/micro_features.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "dsp/fixed_fft.h"

namespace bantam::dsp {
namespace {

using Row = std::array<std::int8_t, MicroFeatures::kChannels>;

class PlacedFeatures {
 public:
  explicit PlacedFeatures(int step_ms) {
    Block counting;
    features.lay_out(step_ms, counting);
    memory_.resize(counting.used());
    Block block(memory_);
    features.lay_out(step_ms, block);
  }

  std::vector<Row> run(std::span<const std::int16_t> samples, std::size_t chunk) {
    std::vector<Row> rows;
    for (std::size_t t = 0; t < samples.size(); t += chunk) {
      auto piece = samples.subspan(t, std::min(chunk, samples.size() - t));
      while (!piece.empty()) {
        const std::int8_t* row = nullptr;
        piece = piece.subspan(features.push(piece, &row));
        if (row == nullptr) continue;
        rows.emplace_back();
        std::copy_n(row, rows.back().size(), rows.back().begin());
      }
    }
    return rows;
  }

  MicroFeatures features;

 private:
  std::vector<std::byte> memory_;
};

std::vector<std::int16_t> loud_noise(std::size_t n, int amplitude) {
  std::minstd_rand random(5);
  std::uniform_int_distribution<int> uniform(-amplitude, amplitude);
  std::vector<std::int16_t> samples(n);
  for (auto& s : samples) s = static_cast<std::int16_t>(uniform(random));
  return samples;
}

TEST(FixedRealFft, IsTheTransformDividedByItsSize) {
  for (const int n : {4, 8, 32, 128, 256, 512, 1024}) {
    Block counting;
    FixedRealFft fft;
    ASSERT_TRUE(FixedRealFft::supports(n));
    fft.lay_out(n, counting);
    std::vector<std::byte> memory(counting.used());
    Block block(memory);
    fft.lay_out(n, block);
    ASSERT_TRUE(block.complete("fft").ok());
    const std::vector<std::int16_t> time = loud_noise(static_cast<std::size_t>(n), 20000);
    std::vector<ComplexInt16> spectrum(static_cast<std::size_t>(fft.bins()));
    fft.forward(time.data(), spectrum.data());
    for (int k = 0; k <= n / 2; ++k) {
      double re = 0;
      double im = 0;
      for (int t = 0; t < n; ++t) {
        re += time[static_cast<std::size_t>(t)] * std::cos(2 * std::numbers::pi * k * t / n) / n;
        im -= time[static_cast<std::size_t>(t)] * std::sin(2 * std::numbers::pi * k * t / n) / n;
      }
      // Half a unit per rounding, of which there are two per stage, damped by the stages that follow.
      EXPECT_NEAR(spectrum[static_cast<std::size_t>(k)].re, re, 4) << "n " << n << " bin " << k;
      EXPECT_NEAR(spectrum[static_cast<std::size_t>(k)].im, im, 4) << "n " << n << " bin " << k;
    }
  }
}

TEST(FixedRealFft, TakesEvenSizesOfSmallFactorsOnly) {
  for (const int n : {-4, 0, 2, 7, 14, 65538}) EXPECT_FALSE(FixedRealFft::supports(n)) << n;
}

TEST(MicroFeatures, AToneRaisesItsOwnChannel) {
  // Channel centres by the mel formula, from the highest to the lowest channel at which one bin is narrower than a
  // band.
  for (const int channel : {12, 20, 30, 38}) {
    const double low = 1127 * std::log1p(125.0 / 700);
    const double high = 1127 * std::log1p(7500.0 / 700);
    const double hz = 700 * std::expm1((low + (high - low) / 41 * (channel + 1)) / 1127);
    std::vector<std::int16_t> samples(480 * 4);
    for (std::size_t t = 0; t < samples.size(); ++t)
      samples[t] =
          static_cast<std::int16_t>(8000 * std::sin(2 * std::numbers::pi * hz * static_cast<double>(t) / 16000));
    PlacedFeatures placed(20);
    const std::vector<Row> rows = placed.run(samples, 480);
    ASSERT_FALSE(rows.empty());
    const auto largest = std::max_element(rows[0].begin(), rows[0].end()) - rows[0].begin();
    EXPECT_EQ(largest, channel) << hz << " Hz";
    EXPECT_GT(rows[0][static_cast<std::size_t>(channel)], 0);
  }
}

TEST(MicroFeatures, SilenceIsTheLowestValue) {
  PlacedFeatures placed(10);
  for (const Row& row : placed.run(std::vector<std::int16_t>(16000, 0), 160))
    for (const std::int8_t value : row) EXPECT_EQ(value, -128);
}

TEST(MicroFeatures, SteadyNoiseIsReduced) {
  PlacedFeatures placed(10);
  const std::vector<Row> rows = placed.run(loud_noise(32000, 3000), 160);
  int first = 0;
  int last = 0;
  for (std::size_t c = 0; c < rows.front().size(); ++c) {
    first += rows.front()[c];
    last += rows.back()[c];
  }
  EXPECT_LT(last, first - 40 * 20);
}

TEST(MicroFeatures, DoesNotDependOnHowTheInputIsCut) {
  const std::vector<std::int16_t> samples = loud_noise(16000, 9000);
  for (const int step : {10, 20}) {
    PlacedFeatures whole(step);
    const std::vector<Row> expected = whole.run(samples, samples.size());
    EXPECT_EQ(expected.size(), static_cast<std::size_t>((16000 - 480) / (16 * step) + 1));
    for (const std::size_t chunk : {1U, 33U, 160U, 512U}) {
      PlacedFeatures pieces(step);
      EXPECT_EQ(pieces.run(samples, chunk), expected) << "chunk " << chunk;
    }
  }
}

TEST(MicroFeatures, TakesFullScaleSamples) {
  std::vector<std::int16_t> samples(480 * 3);
  for (std::size_t t = 0; t < samples.size(); ++t) samples[t] = t % 8 < 4 ? 32767 : -32768;
  PlacedFeatures placed(10);
  EXPECT_FALSE(placed.run(samples, 480).empty());
}

TEST(MicroFeatures, ResetForgetsTheNoise) {
  const std::vector<std::int16_t> samples = loud_noise(4800, 9000);
  PlacedFeatures placed(10);
  const std::vector<Row> first = placed.run(samples, 160);
  EXPECT_NE(placed.run(samples, 160), first);
  placed.features.reset();
  EXPECT_EQ(placed.run(samples, 160), first);
}

}  // namespace
}  // namespace bantam::dsp
