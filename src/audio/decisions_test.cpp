#include "audio/decisions.h"

#include <gtest/gtest.h>

#include <vector>

namespace bantam::audio {
namespace {

TEST(SpeechGate, CountsSpeechOnceItHasLasted) {
  SpeechGate gate(300, 500);
  EXPECT_FALSE(gate.update(true, 200));
  EXPECT_FALSE(gate.update(false, 100)) << "an interruption starts the count again";
  EXPECT_FALSE(gate.update(true, 200));
  EXPECT_TRUE(gate.update(true, 100));
}

TEST(SpeechGate, KeepsSpeechUntilSilenceHasLasted) {
  SpeechGate gate(100, 500);
  ASSERT_TRUE(gate.update(true, 100));
  EXPECT_TRUE(gate.update(false, 400));
  EXPECT_TRUE(gate.update(true, 100));
  EXPECT_TRUE(gate.update(false, 400)) << "speech in between starts the count again";
  EXPECT_FALSE(gate.update(false, 100));
}

TEST(SpeechGate, ResetIsSilence) {
  SpeechGate gate(100, 500);
  ASSERT_TRUE(gate.update(true, 100));
  gate.reset();
  EXPECT_FALSE(gate.speech());
  EXPECT_FALSE(gate.update(true, 50));
}

class Trigger : public ::testing::Test {
 protected:
  void SetUp() override { trigger_.lay_out(4, 1000, block_); }
  bool hear(float probability) { return trigger_.update(probability, 100, 0.5F); }

  alignas(16) std::byte memory_[64];
  dsp::Block block_{memory_};
  WordTrigger trigger_;
};

TEST_F(Trigger, FiresOnTheMeanNotOnOnePeak) {
  EXPECT_FALSE(hear(1.0F));
  EXPECT_FALSE(hear(0.0F));
  EXPECT_FALSE(hear(0.9F));
  EXPECT_FLOAT_EQ(trigger_.smoothed(), 1.9F / 4);
  EXPECT_TRUE(hear(0.2F)) << "1.0, 0.0, 0.9 and 0.2 are 0.525 on average";
}

TEST_F(Trigger, RestsAfterFiring) {
  for (int i = 0; i < 3; ++i) hear(1.0F);
  trigger_.rest();
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(hear(1.0F)) << i;
  EXPECT_TRUE(hear(1.0F)) << "after 1000 samples";
}

TEST_F(Trigger, ResetForgets) {
  for (int i = 0; i < 4; ++i) hear(1.0F);
  trigger_.rest();
  trigger_.reset();
  EXPECT_FALSE(hear(1.0F));
  EXPECT_TRUE(hear(1.0F)) << "no rest is left over";
}

}  // namespace
}  // namespace bantam::audio
