#include "speech/endpoint.h"

#include <gtest/gtest.h>

#include <utility>

namespace bantam::speech {
namespace {

using Span = std::pair<std::int64_t, std::int64_t>;

constexpr float kSilent = 0.9F;
constexpr float kSpoken = 0.5F;

Endpoint after(int spoken, int silent) {
  Endpoint endpoint(kDefaultRules, 40, 0.8F);
  for (int i = 0; i < spoken; ++i) endpoint.step(kSpoken);
  for (int i = 0; i < silent; ++i) endpoint.step(kSilent);
  return endpoint;
}

TEST(Endpoint, ASecondOfSilenceEndsWhatSaysSomething) {
  EXPECT_FALSE(after(10, 24).reached(true));
  EXPECT_TRUE(after(10, 25).reached(true));
  EXPECT_FALSE(after(10, 25).reached(false));
}

TEST(Endpoint, FiveSecondsOfSilenceEndAnything) {
  EXPECT_FALSE(after(0, 124).reached(false));
  EXPECT_TRUE(after(0, 125).reached(false));
}

TEST(Endpoint, TwentySecondsAreTheLongestUtterance) {
  EXPECT_FALSE(after(499, 0).reached(false));
  EXPECT_TRUE(after(500, 0).reached(false));
}

TEST(Endpoint, SpeechAndResetBeginTheSilenceAnew) {
  Endpoint endpoint = after(10, 25);
  endpoint.step(kSpoken);
  EXPECT_FALSE(endpoint.reached(true));
  endpoint = after(10, 25);
  endpoint.reset();
  EXPECT_FALSE(endpoint.reached(true));
}

TEST(Endpoint, TheThresholdItselfIsNoSilence) {
  Endpoint endpoint(kDefaultRules, 40, 0.8F);
  for (int i = 0; i < 200; ++i) endpoint.step(0.8F);
  EXPECT_FALSE(endpoint.reached(true));
}

TEST(UnitTime, LastsAHundredMillisecondsUnlessANeighbourIsNearer) {
  const std::int32_t tokens[] = {1, 2, 3, 4};
  const std::int32_t frames[] = {1, 10, 12, 20};
  Hypothesis hypothesis;
  hypothesis.tokens = tokens;
  hypothesis.frames = frames;
  Recognition result;
  const auto time = [&](std::size_t i) {
    const UnitTime t = unit_time(result, hypothesis, i, 40);
    return Span{t.start_ms, t.end_ms};
  };
  EXPECT_EQ(time(0), (Span{0, 40}));     // would begin before the sound
  EXPECT_EQ(time(1), (Span{300, 440}));  // ends half way to the next
  EXPECT_EQ(time(2), (Span{440, 480}));  // which begins there
  EXPECT_EQ(time(3), (Span{700, 800}));
  result.first_feature = 100;
  EXPECT_EQ(time(3), (Span{1700, 1800}));
}

}  // namespace
}  // namespace bantam::speech
