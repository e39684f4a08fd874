#include "dsp/kaldi_fbank.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

namespace bantam::dsp {
namespace {

struct alignas(Block::kAlignment) Unit {
  std::byte bytes[Block::kAlignment];
};

/// A feature extractor with memory of its own.
struct Placed {
  explicit Placed(const FbankConfig& config = {})
      : blocks((KaldiFbank::bytes(config) + sizeof(Unit) - 1) / sizeof(Unit)) {
    status = fbank.place(config, {blocks.front().bytes, KaldiFbank::bytes(config)});
  }

  /// Features of a sound fed in blocks of `block` samples.
  std::vector<std::vector<float>> run(std::span<const std::int16_t> sound, std::size_t block) {
    std::vector<std::vector<float>> frames;
    std::vector<float> features(static_cast<std::size_t>(fbank.config().bins));
    while (!sound.empty()) {
      auto part = sound.first(std::min(block, sound.size()));
      sound = sound.subspan(part.size());
      while (!part.empty()) {
        bool complete = false;
        part = part.subspan(fbank.feed(part, features, &complete));
        if (complete) frames.push_back(features);
      }
    }
    return frames;
  }

  std::vector<Unit> blocks;
  KaldiFbank fbank;
  Status status;
};

std::vector<std::int16_t> noise(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> uniform(-20000, 20000);
  std::vector<std::int16_t> samples(n);
  for (auto& sample : samples) sample = static_cast<std::int16_t>(uniform(random));
  return samples;
}

/// The definition, in double precision.
std::vector<double> features_by_definition(std::span<const std::int16_t> frame) {
  constexpr int kTransform = 512;
  std::vector<double> x(frame.begin(), frame.end());
  double mean = 0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  for (double& v : x) v -= mean;
  for (std::size_t i = x.size() - 1; i > 0; --i) x[i] -= 0.97 * x[i - 1];
  x[0] -= 0.97 * x[0];
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] *= std::pow(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / 399.0), 0.85);
  const auto mel = [](double hz) { return 1127.0 * std::log(1.0 + hz / 700.0); };
  const double step = (mel(8000) - mel(20)) / 81.0;
  std::vector<double> energy(80, 0.0);
  for (int k = 0; k < kTransform / 2; ++k) {
    std::complex<double> sum;
    for (std::size_t i = 0; i < x.size(); ++i)
      sum += x[i] * std::polar(1.0, -2 * std::numbers::pi * k * static_cast<double>(i) / kTransform);
    for (int t = 0; t < 80; ++t) {
      const double distance = std::abs(mel(k * 16000.0 / kTransform) - (mel(20) + (t + 1) * step)) / step;
      if (distance < 1) energy[static_cast<std::size_t>(t)] += (1 - distance) * std::norm(sum);
    }
  }
  for (double& e : energy) e = std::log(std::max(e, static_cast<double>(FLT_EPSILON)));
  return energy;
}

TEST(KaldiFbank, AgreesWithTheDefinition) {
  const auto sound = noise(400 + 160, 3);
  Placed placed;
  ASSERT_TRUE(placed.status.ok());
  const auto frames = placed.run(sound, sound.size());
  ASSERT_EQ(frames.size(), 2U);
  for (std::size_t f = 0; f < frames.size(); ++f) {
    const auto expected = features_by_definition(std::span(sound).subspan(f * 160, 400));
    for (std::size_t t = 0; t < 80; ++t) EXPECT_NEAR(frames[f][t], expected[t], 1e-3) << "frame " << f << " bin " << t;
  }
}

TEST(KaldiFbank, DoesNotDependOnHowTheSoundIsCut) {
  const auto sound = noise(16000 + 77, 5);
  Placed whole;
  const auto expected = whole.run(sound, sound.size());
  EXPECT_EQ(expected.size(), 1 + (sound.size() - 400) / 160);
  for (const std::size_t block : {1U, 7U, 159U, 160U, 161U, 400U, 401U, 4096U}) {
    Placed cut;
    EXPECT_EQ(cut.run(sound, block), expected) << "blocks of " << block;
  }
}

TEST(KaldiFbank, GivesNoFrameBeforeTheWindowIsFull) {
  Placed placed;
  EXPECT_TRUE(placed.run(noise(399, 1), 399).empty());
  EXPECT_EQ(placed.run(noise(1, 2), 1).size(), 1U);
  placed.fbank.reset();
  EXPECT_TRUE(placed.run(noise(399, 1), 399).empty());
}

TEST(KaldiFbank, SilenceHasTheSmallestEnergy) {
  Placed placed;
  const auto frames = placed.run(std::vector<std::int16_t>(400, 0), 400);
  ASSERT_EQ(frames.size(), 1U);
  for (const float v : frames[0]) EXPECT_FLOAT_EQ(v, std::log(FLT_EPSILON));
}

TEST(KaldiFbank, NeedsExactlyTheBytesItNames) {
  const std::size_t bytes = KaldiFbank::bytes({});
  std::vector<Unit> blocks(bytes / sizeof(Unit) + 1);
  KaldiFbank fbank;
  const Status status = fbank.place({}, {blocks.front().bytes, bytes - 1});
  EXPECT_EQ(status.code, StatusCode::kArenaTooSmall);
  EXPECT_EQ(status.expected, static_cast<std::int64_t>(bytes));
  EXPECT_TRUE(fbank.place({}, {blocks.front().bytes, bytes}).ok());
}

TEST(KaldiFbank, RefusesWhatItCannotDo) {
  for (const FbankConfig& config :
       {FbankConfig{.sample_rate = 0}, FbankConfig{.frame_samples = 0}, FbankConfig{.shift_samples = 0},
        FbankConfig{.shift_samples = 401}, FbankConfig{.bins = 0}, FbankConfig{.low_hz = 9000.0F},
        FbankConfig{.high_hz = 8001.0F}, FbankConfig{.high_hz = NAN}}) {
    EXPECT_EQ(KaldiFbank::bytes(config), 0U);
    EXPECT_EQ(KaldiFbank().place(config, {}).code, StatusCode::kUnsupported);
  }
}

}  // namespace
}  // namespace bantam::dsp
