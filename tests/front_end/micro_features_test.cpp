// The fixed-point features against what TensorFlow Lite Micro's preprocessor graph computed, to the bit.
#include "dsp/micro_features.h"

#include <gtest/gtest.h>

#include <vector>

#include "io/npz.h"
#include "support/models.h"

namespace bantam::testing {
namespace {

constexpr const char* kInput = "in.serving_default_audio_frame_0.";
constexpr const char* kOutput = "out.PartitionedCall_0.";

/// One recorded sequence of windows, on one fresh object.
void expect_recorded_rows(const io::NpzReader& reference, const std::string& name) {
  dsp::MicroFeatures features;
  dsp::Block counting;
  features.lay_out(20, counting);
  std::vector<std::byte> memory(counting.used());
  dsp::Block block(memory);
  features.lay_out(20, block);
  int steps = 0;
  for (; reference.contains(kInput + name + "-s" + std::to_string(steps)); ++steps) {
    const std::string step = name + "-s" + std::to_string(steps);
    const auto window = reference.read(kInput + step);
    const auto expected = reference.read(kOutput + step);
    ASSERT_TRUE(window && expected) << step;
    ASSERT_EQ(window->desc.elements(), dsp::MicroFeatures::kWindow);
    ASSERT_EQ(expected->desc.elements(), dsp::MicroFeatures::kChannels);
    std::vector<std::int8_t> row(dsp::MicroFeatures::kChannels);
    features.compute(io::elements_of<std::int16_t>(*window).data(), row.data());
    const auto recorded = io::elements_of<std::int8_t>(*expected);
    ASSERT_EQ(row, std::vector<std::int8_t>(recorded.begin(), recorded.end())) << step;
  }
  EXPECT_GT(steps, 0) << "no case " << name;
}

TEST(MicroFeatures, AreThoseOfTheReferenceToTheBit) {
  if (!have_shared_models()) GTEST_SKIP() << kNoSharedModels;
  const auto reference = io::NpzReader::open((shared_folder() / "reference" / "audio-preprocessor-int8.npz").string());
  ASSERT_TRUE(reference) << reference.error().message;
  for (const char* name : {"yes", "no", "rand0"}) expect_recorded_rows(*reference, name);
}

}  // namespace
}  // namespace bantam::testing
