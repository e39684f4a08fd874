#include "dsp/resampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

namespace bantam::dsp {
namespace {

class PlacedResampler {
 public:
  PlacedResampler(int from, int to) {
    Block counting;
    resampler.lay_out(from, to, counting);
    memory_.resize(counting.used());
    Block block(memory_);
    resampler.lay_out(from, to, block);
  }

  std::vector<float> run(std::span<const float> in, std::size_t chunk) {
    std::vector<float> out;
    for (std::size_t t = 0; t < in.size(); t += chunk) {
      const auto piece = in.subspan(t, std::min(chunk, in.size() - t));
      std::vector<float> got(resampler.max_output(piece.size()));
      got.resize(resampler.process(piece, got.data()));
      out.insert(out.end(), got.begin(), got.end());
    }
    return out;
  }

  Resampler resampler;

 private:
  std::vector<std::byte> memory_;
};

std::vector<float> tone(double hz, int rate, std::size_t n) {
  std::vector<float> samples(n);
  for (std::size_t t = 0; t < n; ++t)
    samples[t] = static_cast<float>(std::sin(2 * std::numbers::pi * hz * static_cast<double>(t) / rate));
  return samples;
}

/// Amplitude of `hz` and RMS of everything else, after the filter has settled.
std::pair<double, double> amplitude_and_rest(std::span<const float> samples, double hz, int rate) {
  double re = 0;
  double im = 0;
  const auto middle = samples.subspan(samples.size() / 4, samples.size() / 2);
  const auto length = static_cast<double>(middle.size());
  // A Hann window keeps the tone's skirts out of the rest.
  double weight = 0;
  for (std::size_t t = 0; t < middle.size(); ++t) {
    const auto time = static_cast<double>(t);
    const double w = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * time / length);
    re += w * middle[t] * std::cos(2 * std::numbers::pi * hz * time / rate);
    im += w * middle[t] * std::sin(2 * std::numbers::pi * hz * time / rate);
    weight += w;
  }
  re *= 2 / weight;
  im *= 2 / weight;
  double rest = 0;
  for (std::size_t t = 0; t < middle.size(); ++t) {
    const double phase = 2 * std::numbers::pi * hz * static_cast<double>(t) / rate;
    const double error = middle[t] - re * std::cos(phase) - im * std::sin(phase);
    rest += error * error;
  }
  return {std::hypot(re, im), std::sqrt(rest / length)};
}

struct Rates {
  int from;
  int to;
};

class ResamplerRates : public ::testing::TestWithParam<Rates> {};

TEST_P(ResamplerRates, KeepsTonesInThePassBandAndNothingElse) {
  const auto [from, to] = GetParam();
  const int lower = std::min(from, to);
  for (const double share : {0.01, 0.2, 0.4}) {
    PlacedResampler placed(from, to);
    const std::vector<float> out = placed.run(tone(share * lower, from, static_cast<std::size_t>(from) / 2), 777);
    const auto [amplitude, rest] = amplitude_and_rest(out, share * lower, to);
    EXPECT_NEAR(amplitude, 1, 0.012) << share << " of the lower rate";
    EXPECT_LT(rest, 1e-3) << share << " of the lower rate";
  }
}

TEST_P(ResamplerRates, RemovesWhatTheLowerRateCannotHold) {
  const auto [from, to] = GetParam();
  if (from * 5 < to * 6) GTEST_SKIP() << "too little lies between half the lower rate and half the higher one";
  PlacedResampler placed(from, to);
  const double hz = std::min(0.56 * to, 0.49 * from);
  const std::vector<float> out = placed.run(tone(hz, from, static_cast<std::size_t>(from) / 2), 1000);
  for (std::size_t t = out.size() / 4; t < out.size() * 3 / 4; ++t) ASSERT_LT(std::fabs(out[t]), 2e-3F);
}

TEST_P(ResamplerRates, DoesNotDependOnHowTheInputIsCut) {
  const auto [from, to] = GetParam();
  std::minstd_rand random(3);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> in(2000);
  for (float& s : in) s = uniform(random);
  PlacedResampler whole(from, to);
  const std::vector<float> expected = whole.run(in, in.size());
  EXPECT_NEAR(static_cast<double>(expected.size()), 2000.0 * to / from, 1);
  for (const std::size_t chunk : {1U, 7U, 160U}) {
    PlacedResampler pieces(from, to);
    EXPECT_EQ(pieces.run(in, chunk), expected) << "chunk " << chunk;
  }
}

TEST_P(ResamplerRates, IsLateByItsLatency) {
  const auto [from, to] = GetParam();
  PlacedResampler placed(from, to);
  std::vector<float> in(4000, 0.0F);
  const std::size_t edge = 1000;
  std::fill(in.begin() + edge, in.end(), 1.0F);
  const std::vector<float> out = placed.run(in, 100);
  const auto crossing = std::find_if(out.begin(), out.end(), [](float s) { return s > 0.5F; }) - out.begin();
  const double expected = static_cast<double>(edge) * to / from + static_cast<double>(placed.resampler.latency());
  EXPECT_NEAR(static_cast<double>(crossing), expected, 1.5 * std::max(1.0, static_cast<double>(to) / from));
}

INSTANTIATE_TEST_SUITE_P(Pairs, ResamplerRates,
                         ::testing::Values(Rates{48000, 16000}, Rates{44100, 16000}, Rates{22050, 16000},
                                           Rates{8000, 16000}, Rates{16000, 48000}, Rates{16001, 16000}),
                         [](const auto& test) {
                           return std::to_string(test.param.from) + "to" + std::to_string(test.param.to);
                         });

TEST(Resampler, SupportsSaneRatesOnly) {
  EXPECT_TRUE(Resampler::supports(44100, 16000));
  EXPECT_FALSE(Resampler::supports(0, 16000));
  EXPECT_FALSE(Resampler::supports(-16000, 16000));
  EXPECT_FALSE(Resampler::supports(16000, 1000000));
  EXPECT_FALSE(Resampler::supports(1000, 96000));
}

}  // namespace
}  // namespace bantam::dsp
