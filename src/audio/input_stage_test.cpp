#include "audio/input_stage.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

namespace bantam::audio {
namespace {

/// An input stage with its memory.
class Placed {
 public:
  Placed(const std::string& format, int frame, int ring_ms, int sample_rate = kSampleRate) {
    const InputConfig config{.format = format, .sample_rate = sample_rate, .ring_ms = ring_ms};
    dsp::Block counting;
    stage.lay_out(config, channels_of(config), frame, counting);
    memory_.resize(counting.used());
    dsp::Block block(memory_);
    stage.lay_out(config, channels_of(config), frame, block);
    EXPECT_TRUE(block.complete("input stage").ok());
    microphone.resize(static_cast<std::size_t>(frame));
    reference.resize(static_cast<std::size_t>(frame));
  }

  bool read() { return stage.read(microphone.data(), reference.data()); }

  InputStage stage;
  std::vector<std::int16_t> microphone;
  std::vector<std::int16_t> reference;

 private:
  std::vector<std::byte> memory_;
};

/// Sample frames first, first + 1, ...: channel c holds 10 * frame + c.
std::vector<std::int16_t> numbered(int first, int frames, int channels) {
  std::vector<std::int16_t> samples;
  for (int f = first; f < first + frames; ++f)
    for (int c = 0; c < channels; ++c) samples.push_back(static_cast<std::int16_t>(10 * f + c));
  return samples;
}

TEST(InputStage, PicksItsChannels) {
  const Channels channels = channels_of({.format = "NMRMR", .microphone = 1, .reference = 0});
  EXPECT_EQ(channels.count, 5);
  EXPECT_EQ(channels.microphone, 3);
  EXPECT_EQ(channels.reference, 2);
  EXPECT_EQ(channels_of({.format = "M"}).reference, -1);
}

TEST(InputStage, SeparatesInterleavedSamplesHoweverTheyAreCut) {
  for (const std::size_t chunk : {1U, 2U, 5U, 7U, 48U}) {
    Placed placed("RNM", 4, 1);  // 16 sample frames of room
    const std::vector<std::int16_t> samples = numbered(0, 32, 3);
    std::span<const std::int16_t> rest = samples;
    int next = 0;
    while (!rest.empty()) {
      rest = rest.subspan(placed.stage.write(rest.first(std::min(chunk, rest.size()))));
      while (placed.read())
        for (std::size_t i = 0; i < 4; ++i, ++next) {
          ASSERT_EQ(placed.microphone[i], 10 * next + 2) << "chunk " << chunk;
          ASSERT_EQ(placed.reference[i], 10 * next) << "chunk " << chunk;
        }
    }
    EXPECT_EQ(next, 32) << "chunk " << chunk;
  }
}

TEST(InputStage, TellsHowMuchItTookWhenTheRingIsFull) {
  Placed placed("MR", 4, 1);
  const std::vector<std::int16_t> samples = numbered(0, 20, 2);
  EXPECT_EQ(placed.stage.write(samples), 32U);
  EXPECT_EQ(placed.stage.write(samples), 0U);
  EXPECT_EQ(placed.stage.free_share(), 0.0F);
  EXPECT_EQ(placed.stage.dropped(), 0U);
  ASSERT_TRUE(placed.read());
  EXPECT_EQ(placed.stage.free_share(), 0.25F);
  EXPECT_EQ(placed.stage.write(samples), 8U);
}

TEST(InputStage, DropsWholeSampleFramesSoThatChannelsStayChannels) {
  for (const std::size_t chunk : {1U, 3U, 5U, 40U, 41U}) {
    Placed placed("RM", 4, 1);
    const std::vector<std::int16_t> samples = numbered(0, 200, 2);
    for (std::size_t t = 0; t < samples.size(); t += chunk) {
      placed.stage.write_or_drop(std::span(samples).subspan(t, std::min(chunk, samples.size() - t)));
      if (t % 160 < chunk) static_cast<void>(placed.read());
    }
    int read = 0;
    while (placed.read()) {
      read += 4;
      for (std::size_t i = 0; i < 4; ++i) {
        ASSERT_EQ(placed.microphone[i] % 10, 1) << "chunk " << chunk;
        ASSERT_EQ(placed.microphone[i], placed.reference[i] + 1) << "chunk " << chunk << ": of one moment";
      }
    }
    EXPECT_GT(read, 0);
    EXPECT_GT(placed.stage.dropped(), 0U) << "chunk " << chunk;
  }
}

TEST(InputStage, ResamplesTheSameHoweverItIsFed) {
  std::vector<std::int16_t> samples(9600 * 2);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<std::int16_t>(i * 7919 % 20011);
  std::vector<std::vector<std::int16_t>> results;
  for (const std::size_t chunk : {1U, 333U, 4800U}) {
    Placed placed("MR", 64, 100, 48000);
    std::vector<std::int16_t>& result = results.emplace_back();
    std::span<const std::int16_t> rest = samples;
    while (!rest.empty()) {
      rest = rest.subspan(placed.stage.write(rest.first(std::min(chunk, rest.size()))));
      while (placed.read()) {
        result.insert(result.end(), placed.microphone.begin(), placed.microphone.end());
        result.insert(result.end(), placed.reference.begin(), placed.reference.end());
      }
    }
  }
  EXPECT_GE(results[0].size(), 2U * 3100U);
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

TEST(InputStage, OneThreadWritesWhileAnotherReads) {
  Placed placed("M", 32, 5);
  constexpr int kSamples = 32 * 500;
  std::thread writer([&] {
    for (int sent = 0; sent < kSamples;) {
      const auto value = static_cast<std::int16_t>(sent);
      const std::size_t taken = placed.stage.write({&value, 1});
      sent += static_cast<int>(taken);
      if (taken == 0) std::this_thread::yield();
    }
  });
  int next = 0;
  bool in_order = true;
  while (next < kSamples) {
    if (!placed.read()) {
      std::this_thread::yield();
      continue;
    }
    for (const std::int16_t s : placed.microphone) in_order = in_order && s == static_cast<std::int16_t>(next++);
  }
  writer.join();
  EXPECT_TRUE(in_order);
}

}  // namespace
}  // namespace bantam::audio
