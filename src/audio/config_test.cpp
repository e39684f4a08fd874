#include <gtest/gtest.h>

#include <algorithm>

#include "bantam/audio.h"

namespace bantam::audio {
namespace {

bool mentions(const std::vector<ConfigChange>& changes, const std::string& field, const std::string& to) {
  return std::any_of(changes.begin(), changes.end(),
                     [&](const ConfigChange& c) { return c.field == field && c.to == to && !c.why.empty(); });
}

FrontEndConfig with_models(std::initializer_list<const char*> names) {
  FrontEndConfig config;
  for (const char* name : names) config.fleet.models.push_back({.name = name, .path = "unused.onnx"});
  return config;
}

TEST(Check, LeavesTheDefaultsAlone) {
  FrontEndConfig config;
  const auto changes = check(config);
  ASSERT_TRUE(changes);
  EXPECT_TRUE(changes->empty());
  EXPECT_FALSE(*config.aec.enabled) << "there is no reference";
}

TEST(Check, UsesAReferenceThatIsThere) {
  FrontEndConfig config;
  config.input.format = "MR";
  ASSERT_TRUE(check(config)->empty());
  EXPECT_TRUE(*config.aec.enabled);
}

TEST(Check, ReportsEveryChange) {
  FrontEndConfig config = with_models({"a", "b"});
  config.input.format = "MMNRR";
  config.input.microphone = 2;
  config.frame = 500;
  config.vad.model = "a";
  config.vad.min_speech_ms = 10;
  config.wake.push_back({});
  config.wake[0].model = "b";
  config.wake[0].threshold = 0.1F;
  const auto changes = check(config);
  ASSERT_TRUE(changes) << changes.error().message;
  EXPECT_TRUE(mentions(*changes, "input.microphone", "1"));
  EXPECT_TRUE(mentions(*changes, "input.format", "number 1"));
  EXPECT_TRUE(mentions(*changes, "input.format", "number 0"));
  EXPECT_TRUE(mentions(*changes, "frame", "512"));
  EXPECT_TRUE(mentions(*changes, "vad.min_speech_ms", "32"));
  EXPECT_TRUE(mentions(*changes, "wake[1].threshold", "0.4"));
  EXPECT_EQ(changes->size(), 6U);
  EXPECT_TRUE(check(config)->size() == 2U) << "what was changed is not changed again; the channels still are many";
}

TEST(Check, ReportsEchoCancellationWithoutReferenceAndReferenceWithoutEchoCancellation) {
  FrontEndConfig config;
  config.aec.enabled = true;
  EXPECT_TRUE(mentions(*check(config), "aec.enabled", "false"));
  config.input.format = "MR";
  EXPECT_TRUE(mentions(*check(config), "input.format", "N"));
  EXPECT_EQ(config.input.format, "MN");
}

TEST(Check, RefusesWhatNothingComesCloseTo) {
  const auto refused = [](auto&& spoil) {
    FrontEndConfig config = with_models({"a"});
    spoil(config);
    const auto changes = check(config);
    return changes ? std::string("accepted") : changes.error().message;
  };
  EXPECT_NE(refused([](auto& c) { c.input.format = ""; }), "accepted");
  EXPECT_NE(refused([](auto& c) { c.input.format = "RN"; }).find("no microphone"), std::string::npos);
  EXPECT_NE(refused([](auto& c) { c.input.format = "M\n"; }).find("code 10"), std::string::npos);
  EXPECT_NE(refused([](auto& c) { c.input.format = std::string(17, 'M'); }), "accepted");
  EXPECT_NE(refused([](auto& c) { c.input.sample_rate = 0; }).find("sample_rate 0"), std::string::npos);
  EXPECT_NE(refused([](auto& c) { c.ns.model = "b"; }).find("'b'"), std::string::npos);
  EXPECT_NE(refused([](auto& c) { c.ns.model = c.vad.model = "a"; }).find("another stage"), std::string::npos);
  EXPECT_NE(refused([](auto& c) {
              c.wake.resize(1, {}), c.wake[0].model = "a", c.wake[0].classes = {1, 2};
            }),
            "accepted");
}

TEST(Check, ModelsOfStagesThatAreOffCostNothing) {
  FrontEndConfig config = with_models({"noise", "voice", "mine"});
  config.ns.model = "noise";
  config.ns.enabled = false;
  config.vad.model = "voice";
  ASSERT_TRUE(check(config));
  ASSERT_EQ(config.fleet.models.size(), 2U);
  EXPECT_EQ(config.fleet.models[0].name, "voice");
  EXPECT_EQ(config.fleet.models[1].name, "mine") << "the application's own";
}

std::string error_of(const std::string& text) {
  const auto config = parse_front_end_file(text, "test.toml", "models");
  return config ? "accepted" : config.error().message;
}

TEST(FrontEndFile, ReadsEveryKey) {
  const auto config = parse_front_end_file(R"(
frame = 480
[[model]]
name = "m"
path = "m.onnx"
[input]
format = "NMR"
sample_rate = 48000
ring_ms = 250
[aec]
enabled = true
filter_ms = 64
suppress_residual = false
[ns]
model = "m"
kind = "mask"
hop = 128
window = "rectangular"
second_model = "m2"
[vad]
model = "v"
source = "raw"
threshold = 1
[[wake]]
model = "w"
kind = "micro-features"
scores = "logit"
words = ["yes", "go"]
labels = "labels/keyword.txt"
threshold = 0.75
)",
                                           "test.toml", "models");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->frame, 480);
  EXPECT_EQ(config->fleet.models.size(), 1U);
  EXPECT_EQ(config->input.format, "NMR");
  EXPECT_EQ(config->input.sample_rate, 48000);
  EXPECT_EQ(config->aec.filter_ms, 64);
  EXPECT_TRUE(*config->aec.enabled);
  EXPECT_FALSE(config->aec.suppress_residual);
  EXPECT_EQ(config->ns.kind, NoiseKind::kMask);
  EXPECT_EQ(config->ns.window, AnalysisWindow::kRectangular);
  EXPECT_EQ(config->ns.second_model, "m2");
  EXPECT_EQ(config->vad.source, Source::kRaw);
  EXPECT_EQ(config->vad.threshold, 1.0F);
  ASSERT_EQ(config->wake.size(), 1U);
  EXPECT_EQ(config->wake[0].kind, DetectorKind::kMicroFeatures);
  EXPECT_EQ(config->wake[0].scores, Scores::kLogit);
  EXPECT_EQ(config->wake[0].classes, (std::vector<int>{0, 9})) << "as labels/keyword.txt counts them";
}

TEST(FrontEndFile, TellsAllFindingsWithTheirLines) {
  const std::string error =
      error_of("frames = 3\n[ns]\nkind = \"noise\"\n[vad]\nmodel = \"v\"\nthreshold = \"high\"\n");
  EXPECT_NE(error.find("test.toml:1: unknown key 'frames'"), std::string::npos) << error;
  EXPECT_NE(error.find("test.toml:3: 'kind' must be one of \"wave\""), std::string::npos) << error;
  EXPECT_NE(error.find("[ns] needs a model"), std::string::npos) << error;
  EXPECT_NE(error.find("test.toml:6: 'threshold' must be a number"), std::string::npos) << error;
}

TEST(FrontEndFile, RefusesWrongShapesOfTables) {
  EXPECT_NE(error_of("ns = 3").find("write [ns]"), std::string::npos);
  EXPECT_NE(error_of("[wake]\nmodel = \"w\"").find("write [[wake]]"), std::string::npos);
  EXPECT_NE(error_of("[[wake]]\nmodel = \"w\"\nwords = [1]").find("list of texts"), std::string::npos);
  EXPECT_NE(error_of("[[wake]]\nmodel = \"w\"\nwords = [\"never\"]\nlabels = \"labels/keyword.txt\"").find("'never'"),
            std::string::npos);
  EXPECT_NE(error_of("frame = 99999999999").find("'frame' must be an integer"), std::string::npos);
  EXPECT_NE(error_of("frame = [").find("test.toml:1"), std::string::npos);
}

}  // namespace
}  // namespace bantam::audio
