#include "io/wav.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "io/file.h"
#include "io/testing/corruption.h"
#include "io/testing/temporary_folder.h"

namespace bantam::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sound ramp(int channels, int frames) {
  Sound sound{16000, channels, {}};
  for (int i = 0; i < channels * frames; ++i)
    sound.samples.push_back(static_cast<float>(i * 37 % 65536 - 32768) / 32768.0F);
  return sound;
}

TEST(Wav, SixteenBitSamplesSurviveExactly) {
  for (const int channels : {1, 2, 5}) {
    const Sound sound = ramp(channels, 40000);
    const auto bytes = encode_wav(sound);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    const auto back = decode_sound(*bytes);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_EQ(back->sample_rate, 16000);
    EXPECT_EQ(back->channels, channels);
    EXPECT_EQ(back->frames(), 40000);
    EXPECT_EQ(back->samples, sound.samples);
    EXPECT_EQ(to_int16(back->samples), to_int16(sound.samples));
  }
}

TEST(Wav, EmptySoundSurvives) {
  const auto back = decode_sound(*encode_wav({8000, 1, {}}));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->frames(), 0);
  EXPECT_EQ(back->sample_rate, 8000);
}

TEST(Wav, IntegersRoundHalfAwayAndSaturate) {
  const std::vector<float> samples = {0.0F, 1.0F, -1.0F, 2.0F, -2.0F, 0.5F / 32768, -0.5F / 32768, std::nanf("")};
  EXPECT_THAT(to_int16(samples), ElementsAre(0, 32767, -32768, 32767, -32768, 1, -1, 0));
}

TEST(Wav, MonoIsTheMeanOfTheChannels) {
  EXPECT_THAT(mix_to_mono({8000, 2, {1.0F, 0.0F, -0.5F, 0.25F}}), ElementsAre(0.5F, -0.125F));
  EXPECT_THAT(mix_to_mono({8000, 1, {1.0F, 0.0F}}), ElementsAre(1.0F, 0.0F));
}

TEST(Wav, RefusesToWriteImpossibleSounds) {
  EXPECT_FALSE(encode_wav({8000, 0, {}}).has_value());
  EXPECT_FALSE(encode_wav({0, 1, {}}).has_value());
  EXPECT_FALSE(encode_wav({-8000, 1, {}}).has_value());
  EXPECT_FALSE(encode_wav({8000, 2, {1.0F}}).has_value());
  EXPECT_FALSE(encode_wav({8000, 1 << 20, {}}).has_value());
}

TEST(Wav, OtherBytesAreAnError) {
  EXPECT_FALSE(decode_sound({}).has_value());
  EXPECT_FALSE(decode_sound(bytes_of("this is no sound file at all, however long it goes on")).has_value());
}

TEST(Wav, TruncatedFilesGiveAShorterSoundOrAnError) {
  const Sound sound = ramp(1, 200);
  const auto file = encode_wav(sound);
  testing::for_each_truncation(*file, [&](const auto& bytes) {
    const auto back = decode_sound(bytes);
    if (!back) return;
    ASSERT_LE(back->samples.size(), sound.samples.size());
    EXPECT_TRUE(std::equal(back->samples.begin(), back->samples.end(), sound.samples.begin()));
  });
}

TEST(Wav, DamagedFilesGiveABoundedSoundOrAnError) {
  const auto file = encode_wav(ramp(2, 100));
  testing::for_random_damage(*file, 5000, [&](const auto& bytes) {
    const auto back = decode_sound(bytes);
    if (!back) return;
    EXPECT_GE(back->channels, 1);
    EXPECT_EQ(back->samples.size() % static_cast<std::size_t>(back->channels), 0U);
    EXPECT_LE(back->samples.size(), 16 * bytes.size());  // no format packs many samples into one byte
  });
}

TEST(Wav, FilesAreWrittenAndRead) {
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(write_wav(folder.file("a.wav"), ramp(1, 10)).has_value());
  EXPECT_EQ(read_sound(folder.file("a.wav"))->samples, ramp(1, 10).samples);
  EXPECT_THAT(read_sound(folder.file("b.wav")).error().message, HasSubstr("b.wav"));
}

}  // namespace
}  // namespace bantam::io
