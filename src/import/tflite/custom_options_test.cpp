#include "import/tflite/custom_options.h"

#include <flatbuffers/flexbuffers.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace bantam::import::tflite {
namespace {

using ::testing::UnorderedElementsAre;

std::vector<std::uint8_t> varied_options() {
  flexbuffers::Builder fbb;
  fbb.Map([&] {
    fbb.Int("negative", -3);
    fbb.UInt("large", 4000000000U);
    fbb.Float("float", 0.25F);
    fbb.Double("double", 1e-9);
    fbb.Bool("flag", true);
    fbb.IndirectFloat("far", 2.5F);
    fbb.String("text", "no number");
  });
  fbb.Finish();
  return fbb.GetBuffer();
}

TEST(CustomOptions, ReadsNumbersOfEveryKind) {
  const auto options = CustomOptions::parse(varied_options());
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->number("negative"), -3);
  EXPECT_EQ(options->number("large"), 4000000000.0);
  EXPECT_EQ(options->number("float"), 0.25);
  EXPECT_EQ(options->number("double"), 1e-9);
  EXPECT_EQ(options->number("flag"), 1);
  EXPECT_EQ(options->number("far"), 2.5);
  EXPECT_TRUE(options->has("text"));
  EXPECT_FALSE(options->number("text"));
  EXPECT_FALSE(options->number("absent"));
  EXPECT_THAT(options->names(), UnorderedElementsAre("negative", "large", "float", "double", "flag", "far", "text"));
}

TEST(CustomOptions, NothingIsAnEmptyMap) {
  const auto options = CustomOptions::parse({});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->names().empty());
}

TEST(CustomOptions, ARootThatIsNoMapIsAnError) {
  flexbuffers::Builder fbb;
  fbb.Int(7);
  fbb.Finish();
  EXPECT_FALSE(CustomOptions::parse(fbb.GetBuffer()));
}

/// Exactly as large as its content, so that AddressSanitizer sees a read beyond it.
void expect_options_or_message(const std::vector<std::uint8_t>& bytes) {
  const std::vector<std::uint8_t> exact(bytes);
  if (const auto options = CustomOptions::parse(exact); !options) {
    EXPECT_FALSE(options.error().message.empty());
  }
}

TEST(CustomOptions, DamagedBytesNeverCrash) {
  const auto intact = varied_options();
  for (std::size_t size = 0; size < intact.size(); ++size) {
    expect_options_or_message({intact.begin(), intact.begin() + static_cast<std::ptrdiff_t>(size)});
    expect_options_or_message({intact.end() - static_cast<std::ptrdiff_t>(size), intact.end()});
  }
  for (std::size_t at = 0; at < intact.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      auto forged = intact;
      forged[at] = static_cast<std::uint8_t>(value);
      expect_options_or_message(forged);
    }
  }
  constexpr std::uint32_t kSeed = 77;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::uint8_t> noise(random() % 64);
    for (auto& byte : noise) byte = static_cast<std::uint8_t>(random() % 4 == 0 ? random() : random() % 12);
    expect_options_or_message(noise);
  }
}

}  // namespace
}  // namespace bantam::import::tflite
