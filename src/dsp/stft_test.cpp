#include "dsp/stft.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace bantam::dsp {
namespace {

std::vector<std::byte> memory_for(const StftShape& shape, Stft& stft) {
  Block counting;
  stft.lay_out(shape, counting);
  return std::vector<std::byte>(counting.used());
}

std::vector<float> noise(std::size_t n) {
  std::minstd_rand random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> samples(n);
  for (float& s : samples) s = uniform(random);
  return samples;
}

class StftRoundTrip : public ::testing::TestWithParam<StftShape> {};

TEST_P(StftRoundTrip, UnchangedSpectraGiveTheInputBackLate) {
  const StftShape shape = GetParam();
  ASSERT_TRUE(Stft::check(shape).ok());
  Stft stft;
  std::vector<std::byte> memory = memory_for(shape, stft);
  Block block(memory);
  stft.lay_out(shape, block);
  ASSERT_TRUE(block.complete("stft").ok());
  const std::vector<float> in = noise(static_cast<std::size_t>(shape.hop) * 40);
  std::vector<float> out(in.size());
  std::vector<std::complex<float>> spectrum(static_cast<std::size_t>(stft.bins()));
  for (std::size_t t = 0; t < in.size(); t += static_cast<std::size_t>(shape.hop)) {
    stft.analyse(in.data() + t, spectrum.data());
    stft.synthesise(spectrum.data(), out.data() + t);
  }
  const auto delay = static_cast<std::size_t>(shape.size - shape.hop);
  for (std::size_t t = delay; t < in.size(); ++t) ASSERT_NEAR(out[t], in[t - delay], 1e-5F) << t;
}

INSTANTIATE_TEST_SUITE_P(Shapes, StftRoundTrip,
                         ::testing::Values(StftShape{512, 256, Window::kSqrtHann},
                                           StftShape{512, 128, Window::kRectangular},
                                           StftShape{480, 160, Window::kHamming}, StftShape{400, 150, Window::kHann}));

TEST(Stft, RefusesWhatCannotBeUndone) {
  EXPECT_EQ(Stft::check({514, 257, Window::kHann}).code, StatusCode::kUnsupported);
  EXPECT_EQ(Stft::check({512, 0, Window::kHann}).code, StatusCode::kInvalidArgument);
  EXPECT_EQ(Stft::check({512, 513, Window::kHann}).code, StatusCode::kInvalidArgument);
  EXPECT_EQ(Stft::check({512, 512, Window::kHann}).code, StatusCode::kInvalidArgument) << "gaps of zero weight";
}

TEST(Stft, ResetForgetsWhatCameBefore) {
  const StftShape shape;
  Stft stft;
  std::vector<std::byte> memory = memory_for(shape, stft);
  Block block(memory);
  stft.lay_out(shape, block);
  const std::vector<float> in = noise(256);
  std::vector<std::complex<float>> first(257);
  std::vector<std::complex<float>> again(257);
  stft.analyse(in.data(), first.data());
  stft.analyse(in.data(), again.data());
  EXPECT_NE(first, again);
  stft.reset();
  stft.analyse(in.data(), again.data());
  EXPECT_EQ(first, again);
}

TEST(Block, RefusesWhatDoesNotFitAndSaysHowMuchWouldBeNeeded) {
  alignas(16) std::byte memory[64];
  Block block(memory);
  EXPECT_NE(block.take<float>(5), nullptr);
  EXPECT_EQ(block.used(), 32U);
  EXPECT_EQ(block.take<float>(9), nullptr);
  EXPECT_EQ(block.complete("test").code, StatusCode::kArenaTooSmall);
  EXPECT_EQ(block.complete("test").expected, 80);
  EXPECT_EQ(Block(std::span(memory).subspan(4)).complete("test").code, StatusCode::kMisaligned);
}

}  // namespace
}  // namespace bantam::dsp
