// Recognisers with WeNet's interface, from file to text: against recorded results, however the sound is cut, in bounded
// memory, and without an allocation. The bundled one, and ../shared/models/wenet-tiny where it is there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "diagnose/allocations/allocation_counter.h"
#include "dsp/kaldi_fbank.h"
#include "io/npz.h"
#include "speech/recognizer/error_rate.h"
#include "support/models.h"
#include "transcription/recordings.h"

namespace bantam::testing {
namespace {

namespace fs = std::filesystem;
using speech::SegmentEnd;
using speech::StreamConfig;

constexpr double kScoreTolerance = 1e-3;

std::vector<fs::path> model_folders() {
  std::vector<fs::path> folders;
  for (const fs::path& folder : {fs::path("models/recogniser"), shared_folder() / "wenet-tiny"})
    if (fs::is_regular_file(folder / "test" / "expected.json")) folders.push_back(folder);
  return folders;
}

nlohmann::json read_json(const fs::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file, nullptr, false);
}

std::vector<std::int16_t> read_sound(const fs::path& path) {
  auto samples = read_speech(path);
  EXPECT_TRUE(samples) << samples.error().message;
  return samples ? std::move(*samples) : std::vector<std::int16_t>();
}

Status feed(speech::Stream& stream, std::span<const std::int16_t> samples, std::size_t block) {
  while (!samples.empty()) {
    const auto part = samples.first(std::min(block, samples.size()));
    if (const Status s = stream.feed(part); !s.ok()) return s;
    samples = samples.subspan(part.size());
  }
  return ok_status();
}

/// One sound through a new stream.
std::vector<Heard> hear(const Recognizer& recognizer, const StreamConfig& config, std::span<const std::int16_t> samples,
                        std::size_t block = 16000) {
  auto stream = recognizer.open_stream(config);
  if (!stream) {
    ADD_FAILURE() << stream.error().message;
    return {};
  }
  Listening listening(recognizer, **stream);
  const Status fed = feed(**stream, samples, block);
  EXPECT_TRUE(fed.ok()) << fed.message;
  const Status finished = (*stream)->finish();
  EXPECT_TRUE(finished.ok()) << finished.message;
  return listening.events;
}

std::vector<Heard> finals(std::vector<Heard> events) {
  std::erase_if(events, [](const Heard& h) { return h.end == SegmentEnd::kNone; });
  return events;
}

void expect_best(const Heard& heard, const nlohmann::json& expected) {
  EXPECT_EQ(heard.text, expected["text"].get<std::string>());
  ASSERT_FALSE(heard.nbest.empty());
  EXPECT_NEAR(static_cast<double>(heard.nbest.front().score), expected["score"].get<double>(), kScoreTolerance);
}

/// A folder's recogniser, opened once for all tests.
const Recognizer* recogniser_of(const fs::path& folder) {
  static std::map<fs::path, Recognizer> opened;
  auto known = opened.find(folder);
  if (known == opened.end()) {
    auto recognizer = Recognizer::open({.model = folder, .max_seconds = 10.0, .max_tokens = 100});
    if (!recognizer) {
      ADD_FAILURE() << recognizer.error().message << "\n" << recognizer.error().remedy;
      return nullptr;
    }
    known = opened.emplace(folder, std::move(*recognizer)).first;
  }
  return &known->second;
}

/// Some records leave out the partial result at the sound's end when no frame was left for the encoder.
std::vector<std::string> without_repeated_end(std::vector<std::string> partials) {
  if (partials.size() > 1 && partials.back() == partials[partials.size() - 2]) partials.pop_back();
  return partials;
}

class RecogniserFolder : public ::testing::TestWithParam<fs::path> {
 protected:
  void SetUp() override {
    expected_ = read_json(GetParam() / "test" / "expected.json");
    ASSERT_TRUE(expected_.is_object());
    recognizer_ = recogniser_of(GetParam());
    ASSERT_NE(recognizer_, nullptr);
  }

  std::vector<std::int16_t> sound(const std::string& key) const {
    return read_sound(GetParam() / "test" / (key + ".wav"));
  }
  std::string first_key() const { return expected_.begin().key(); }

  nlohmann::json expected_;
  const Recognizer* recognizer_ = nullptr;
};

TEST_P(RecogniserFolder, TextsScoresAndTimesAreTheRecordedOnes) {
  for (const auto& [key, expected] : expected_.items()) {
    SCOPED_TRACE(key);
    const auto samples = sound(key);
    const auto heard = hear(*recognizer_, {}, samples);
    std::vector<std::string> partials;
    for (const Heard& h : heard)
      if (h.end == SegmentEnd::kNone) partials.push_back(h.text);
    EXPECT_EQ(without_repeated_end(partials),
              without_repeated_end(expected["partials"].get<std::vector<std::string>>()));
    ASSERT_EQ(finals(heard).size(), 1U);
    EXPECT_EQ(finals(heard).front().end, SegmentEnd::kInput);
    expect_best(finals(heard).front(), expected["rescored_rw0"]);

    const auto reversed = finals(hear(*recognizer_, {.reverse_weight = 0.3F}, samples));
    ASSERT_EQ(reversed.size(), 1U);
    expect_best(reversed.front(), expected["rescored_rw03"]);

    const auto alone = finals(hear(*recognizer_, {.rescoring_weight = 0.0F}, samples));
    ASSERT_EQ(alone.size(), 1U);
    expect_best(alone.front(), expected["ctc_prefix"]);
    EXPECT_EQ(alone.front().nbest.front().frames, expected["times"].get<std::vector<std::int32_t>>());
  }
}

TEST_P(RecogniserFolder, NBestListsAreTheRecordedOnes) {
  const std::pair<const char*, StreamConfig> lists[] = {
      {"ctc_prefix", {.rescoring_weight = 0.0F}}, {"rescored_rw0", {}}, {"rescored_rw03", {.reverse_weight = 0.3F}}};
  for (const auto& [key, expected] : expected_.items()) {
    if (!expected.contains("nbest")) continue;
    SCOPED_TRACE(key);
    const auto samples = sound(key);
    for (const auto& [list, config] : lists) {
      SCOPED_TRACE(list);
      const auto heard = finals(hear(*recognizer_, config, samples));
      ASSERT_EQ(heard.size(), 1U);
      const nlohmann::json& lines = expected["nbest"][list];
      ASSERT_EQ(heard.front().nbest.size(), lines.size());
      for (std::size_t i = 0; i < lines.size(); ++i) {
        EXPECT_EQ(heard.front().nbest[i].text, lines[i]["text"].get<std::string>()) << i;
        EXPECT_NEAR(static_cast<double>(heard.front().nbest[i].score), lines[i]["score"].get<double>(), kScoreTolerance)
            << i;
      }
    }
  }
}

TEST_P(RecogniserFolder, ContinuousDecodingClosesUtterancesWhereItWasRecorded) {
  for (const auto& [key, expected] : expected_.items()) {
    if (!expected.contains("continuous")) continue;
    SCOPED_TRACE(key);
    const auto heard = finals(hear(*recognizer_, {.continuous = true}, sound(key)));
    const nlohmann::json& segments = expected["continuous"];
    ASSERT_EQ(heard.size(), segments.size());
    for (std::size_t i = 0; i < heard.size(); ++i) {
      EXPECT_EQ(heard[i].end, segments[i]["reason"] == "end" ? SegmentEnd::kInput : SegmentEnd::kEndpoint);
      EXPECT_EQ(heard[i].first_feature, segments[i]["frames_from"].get<std::int64_t>());
      EXPECT_EQ(heard[i].first_feature + heard[i].features, segments[i]["frames_to"].get<std::int64_t>());
      expect_best(heard[i], segments[i]);
    }
  }
}

TEST_P(RecogniserFolder, HowTheSoundIsCutDoesNotMatter) {
  const auto samples = sound(first_key());
  const auto whole = hear(*recognizer_, {}, samples, samples.size());
  for (const std::size_t block : {160U, 16000U, 37U, 10720U})
    EXPECT_EQ(hear(*recognizer_, {}, samples, block), whole) << "blocks of " << block << " samples";
}

TEST_P(RecogniserFolder, InterleavedStreamsHearWhatTheyHearAlone) {
  const std::string keys[] = {first_key(), std::prev(expected_.end()).key()};
  std::vector<std::int16_t> sounds[2];
  std::vector<Heard> alone[2];
  for (int i = 0; i < 2; ++i) {
    sounds[i] = sound(keys[i]);
    alone[i] = hear(*recognizer_, {.continuous = true}, sounds[i]);
  }
  auto first = recognizer_->open_stream({.continuous = true});
  auto second = recognizer_->open_stream({.continuous = true});
  ASSERT_TRUE(first && second);
  Listening hears_first(*recognizer_, **first);
  Listening hears_second(*recognizer_, **second);
  for (std::size_t at = 0; at < std::max(sounds[0].size(), sounds[1].size()); at += 1600) {
    const auto part = [&](const std::vector<std::int16_t>& s) {
      return std::span(s).subspan(std::min(at, s.size()),
                                  std::min<std::size_t>(1600, s.size() - std::min(at, s.size())));
    };
    ASSERT_TRUE((*first)->feed(part(sounds[0])).ok());
    ASSERT_TRUE((*second)->feed(part(sounds[1])).ok());
  }
  ASSERT_TRUE((*first)->finish().ok());
  ASSERT_TRUE((*second)->finish().ok());
  EXPECT_EQ(hears_first.events, alone[0]);
  EXPECT_EQ(hears_second.events, alone[1]);
}

TEST_P(RecogniserFolder, AfterResetASoundIsHeardAsTheFirstTime) {
  const auto samples = sound(first_key());
  auto stream = recognizer_->open_stream();
  ASSERT_TRUE(stream) << stream.error().message;
  Listening listening(*recognizer_, **stream);
  std::vector<Heard> first;
  for (int round = 0; round < 2; ++round) {
    listening.events.clear();
    ASSERT_TRUE(feed(**stream, samples, 1600).ok());
    ASSERT_TRUE((*stream)->finish().ok());
    ASSERT_TRUE((*stream)->finish().ok());  // does nothing more
    EXPECT_EQ((*stream)->feed(samples).code, StatusCode::kInvalidArgument);
    if (round == 0) first = listening.events;
    (*stream)->reset();
  }
  EXPECT_EQ(listening.events, first);
  // A sound that was broken off leaves nothing behind either.
  ASSERT_TRUE(feed(**stream, std::span(samples).first(samples.size() / 2), 1600).ok());
  (*stream)->reset();
  listening.events.clear();
  ASSERT_TRUE(feed(**stream, samples, 1600).ok());
  ASSERT_TRUE((*stream)->finish().ok());
  EXPECT_EQ(listening.events, first);
}

TEST_P(RecogniserFolder, ALongSoundIsClosedWhereMemoryEndsAndHeardToItsEnd) {
  auto short_memory = Recognizer::open({.model = GetParam(), .max_seconds = 2.0, .max_tokens = 40});
  ASSERT_TRUE(short_memory) << short_memory.error().message;
  std::vector<std::int16_t> samples;
  for (const auto& [key, expected] : expected_.items()) std::ranges::copy(sound(key), std::back_inserter(samples));
  const auto heard = finals(hear(*short_memory, {}, samples));
  ASSERT_GT(heard.size(), 2U);
  EXPECT_EQ(heard.front().end, SegmentEnd::kLimit);
  EXPECT_EQ(heard.back().end, SegmentEnd::kInput);
  for (const Heard& h : heard) EXPECT_LE(h.features, 300);
  EXPECT_EQ(heard.back().first_feature + heard.back().features,
            1 + (static_cast<std::int64_t>(samples.size()) - 400) / 160);
}

TEST_P(RecogniserFolder, PositionsThatRunOutCloseTheUtterance) {
  // Without rescoring nothing but the table of positions bounds an utterance; noise keeps the prefixes short.
  std::vector<std::int16_t> samples(16000 * 75);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<std::int16_t>((i * 7919) % 13);
  const auto speech = sound(first_key());
  std::ranges::copy(speech, samples.begin());
  std::ranges::copy(speech, samples.end() - static_cast<std::ptrdiff_t>(speech.size()));
  const auto heard = finals(hear(*recognizer_, {.rescoring_weight = 0.0F}, samples));
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard.front().end, SegmentEnd::kLimit);
  EXPECT_EQ(heard.back().end, SegmentEnd::kInput);
  EXPECT_EQ(heard.front().features, heard.back().first_feature);
}

TEST_P(RecogniserFolder, ShortAndEmptySoundsHaveAnEmptyResult) {
  for (const std::size_t length : {0U, 1U, 399U, 400U, 1200U}) {
    const auto heard = hear(*recognizer_, {}, std::vector<std::int16_t>(length, 0));
    ASSERT_EQ(finals(heard).size(), 1U) << length;
    EXPECT_EQ(finals(heard).front().text, "") << length;
  }
}

TEST_P(RecogniserFolder, NothingIsAllocatedAfterOpening) {
  if (!diagnose::counts_allocations()) GTEST_SKIP() << "allocations are not counted under sanitizers";
  const auto samples = sound(first_key());
  auto stream = recognizer_->open_stream({.reverse_weight = 0.3F, .continuous = true});
  ASSERT_TRUE(stream) << stream.error().message;
  std::size_t calls = 0;
  (*stream)->set_listener(
      {&calls, [](void* count, const speech::Recognition&) { ++*static_cast<std::size_t*>(count); }});
  Status status;
  const std::uint64_t before = diagnose::allocation_count() + diagnose::deallocation_count();
  for (int round = 0; round < 3 && status.ok(); ++round) {
    (*stream)->reset();
    status = feed(**stream, samples, 160);
    if (status.ok()) status = (*stream)->finish();
  }
  EXPECT_EQ(diagnose::allocation_count() + diagnose::deallocation_count(), before);
  EXPECT_TRUE(status.ok()) << status.message;
  EXPECT_GT(calls, 3U);
}

TEST_P(RecogniserFolder, AStreamNeedsExactlyWhatItsPlanSays) {
  const auto plan = recognizer_->plan();
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_GE(plan->total_bytes, plan->fleet.arena_bytes + plan->feature_bytes + plan->search_bytes +
                                   plan->utterance_bytes + plan->result_bytes);
  constexpr std::size_t kGuard = 256;
  constexpr auto kCanary = static_cast<unsigned char>(0xA5);
  struct alignas(64) Unit {
    unsigned char bytes[64];
  };
  std::vector<Unit> memory(plan->total_bytes / sizeof(Unit) + 2 + kGuard / sizeof(Unit));
  auto* const bytes = memory.front().bytes;
  std::fill_n(bytes, memory.size() * sizeof(Unit), kCanary);
  const std::span<std::byte> exact(reinterpret_cast<std::byte*>(bytes), plan->total_bytes);
  speech::Stream stream;
  const Status less = stream.open(recognizer_->package(), recognizer_->units(), {}, exact.first(exact.size() - 1));
  EXPECT_EQ(less.code, StatusCode::kArenaTooSmall);
  EXPECT_EQ(less.expected, static_cast<std::int64_t>(plan->total_bytes));
  EXPECT_EQ(stream.open(recognizer_->package(), recognizer_->units(), {}, {exact.data() + 16, exact.size()}).code,
            StatusCode::kMisaligned);
  ASSERT_TRUE(stream.open(recognizer_->package(), recognizer_->units(), {}, exact).ok());
  ASSERT_TRUE(feed(stream, sound(first_key()), 16000).ok());
  ASSERT_TRUE(stream.finish().ok());
  for (std::size_t i = 0; i < kGuard; ++i)
    ASSERT_EQ(bytes[plan->total_bytes + i], kCanary) << "byte " << i << " behind";
}

TEST_P(RecogniserFolder, OptionsThatTheExportContradictsAreRefused) {
  const auto message = [&](const RecognizerSpec& spec) {
    const auto opened = Recognizer::open(spec);
    return opened ? std::string("opened") : opened.error().message;
  };
  EXPECT_NE(message({.model = GetParam(), .chunk_size = 8}).find("chunk_size = 16"), std::string::npos);
  EXPECT_NE(message({.model = GetParam(), .left_chunks = -1}).find("left_chunks = 4"), std::string::npos);
  EXPECT_EQ(message({.model = GetParam(), .chunk_size = 16, .left_chunks = 4, .max_seconds = 1.0, .max_tokens = 20}),
            "opened");
  for (const StreamConfig& config : {StreamConfig{.beam = 0}, StreamConfig{.beam = 33}, StreamConfig{.ctc_weight = NAN},
                                     StreamConfig{.rescoring_weight = -1.0F}, StreamConfig{.reverse_weight = 1.5F},
                                     StreamConfig{.blank_scale = 0.0F}})
    EXPECT_FALSE(recognizer_->plan(config));
}

std::string folder_name(const ::testing::TestParamInfo<fs::path>& folder) {
  std::string name = folder.param.filename().string();
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, RecogniserFolder, ::testing::ValuesIn(model_folders()), folder_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecogniserFolder);

class WenetTinyReference : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::is_directory(folder_)) GTEST_SKIP() << kNoSharedModels;
    auto archive = io::NpzReader::open((folder_ / "reference.npz").string());
    ASSERT_TRUE(archive) << archive.error().message;
    archive_.emplace(std::move(*archive));
  }

  io::Array read(const std::string& entry) {
    auto array = archive_->read(entry);
    EXPECT_TRUE(array) << array.error().message;
    return array ? std::move(*array) : io::Array{};
  }

  fs::path folder_ = shared_folder() / "wenet-tiny";
  std::optional<io::NpzReader> archive_;
};

TEST_F(WenetTinyReference, FeaturesAreTheRecordedOnes) {
  const io::Array pcm = read("pcm");
  const io::Array expected = read("feats");
  struct alignas(64) Unit {
    std::byte bytes[64];
  };
  std::vector<Unit> memory(dsp::KaldiFbank::bytes({}) / sizeof(Unit) + 1);
  dsp::KaldiFbank fbank;
  ASSERT_TRUE(fbank.place({}, {memory.front().bytes, memory.size() * sizeof(Unit)}).ok());
  std::vector<float> frame(80);
  std::size_t frames = 0;
  double error = 0;
  double largest = 0;
  for (auto samples = io::elements_of<std::int16_t>(pcm); !samples.empty();) {
    bool complete = false;
    samples = samples.subspan(fbank.feed(samples, frame, &complete));
    if (!complete) continue;
    const auto row = io::elements_of<float>(expected).subspan(frames++ * 80, 80);
    for (std::size_t k = 0; k < 80; ++k) {
      error = std::max(error, std::abs(static_cast<double>(frame[k] - row[k])));
      largest = std::max(largest, std::abs(static_cast<double>(row[k])));
    }
  }
  EXPECT_EQ(frames, static_cast<std::size_t>(expected.desc.dims[0]));
  EXPECT_LE(error, 1e-4 * largest);
}

TEST_F(WenetTinyReference, NBestListsAndTheirTimesAreTheRecordedOnes) {
  auto recognizer = Recognizer::open({.model = folder_});
  ASSERT_TRUE(recognizer) << recognizer.error().message;
  const io::Array pcm = read("pcm");
  const auto samples = io::elements_of<std::int16_t>(pcm);
  const io::Array ids = read("nbest_ids");
  const io::Array lengths = read("nbest_lens");
  const io::Array times = read("nbest_times");
  const auto width = static_cast<std::size_t>(ids.desc.dims[1]);
  const auto check = [&](const StreamConfig& config, const std::string& scores_entry) {
    SCOPED_TRACE(scores_entry);
    const io::Array scores = read(scores_entry);
    // The lists are recorded in the order of the CTC scores: the recorded rank of each is that of its score.
    std::vector<std::size_t> order(io::elements_of<double>(scores).size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](std::size_t i) { return io::elements_of<double>(scores)[i]; });
    const auto heard = finals(hear(*recognizer, config, samples));
    ASSERT_EQ(heard.size(), 1U);
    ASSERT_EQ(heard.front().nbest.size(), order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const HeardLine& line = heard.front().nbest[i];
      const auto length = static_cast<std::size_t>(io::elements_of<std::int64_t>(lengths)[order[i]]);
      const auto row = [&](const io::Array& array) {
        const auto all = io::elements_of<std::int64_t>(array).subspan(order[i] * width, length);
        return std::vector<std::int32_t>(all.begin(), all.end());
      };
      EXPECT_EQ(line.tokens, row(ids)) << i;
      EXPECT_EQ(line.frames, row(times)) << i;
      EXPECT_NEAR(static_cast<double>(line.score), io::elements_of<double>(scores)[order[i]], kScoreTolerance) << i;
    }
  };
  check({.rescoring_weight = 0.0F}, "nbest_ctc_score");
  check({}, "nbest_final_rw0");
  check({.reverse_weight = 0.3F}, "nbest_final_rw03");
}

TEST_F(WenetTinyReference, WholeUtterancesAreHeardByTheNonStreamingExport) {
  auto recognizer = Recognizer::open({.model = folder_ / "nonstreaming", .max_seconds = 10.0, .max_tokens = 100});
  ASSERT_TRUE(recognizer) << recognizer.error().message;
  EXPECT_EQ(recognizer->chunk_size(), 0);
  const nlohmann::json expected = read_json(folder_ / "test" / "expected.json");
  for (const auto& [key, entry] : expected.items()) {
    SCOPED_TRACE(key);
    const auto samples = read_sound(folder_ / "test" / (key + ".wav"));
    const auto heard = finals(hear(*recognizer, {}, samples, 1600));
    ASSERT_EQ(heard.size(), 1U);
    expect_best(heard.front(), entry["nonstreaming"]["rescored_rw0"]);
    const auto alone = finals(hear(*recognizer, {.rescoring_weight = 0.0F}, samples, 16000));
    ASSERT_EQ(alone.size(), 1U);
    expect_best(alone.front(), entry["nonstreaming"]["ctc_prefix"]);
  }
  EXPECT_FALSE(recognizer->plan({.reverse_weight = 0.3F}));  // exported without a right-to-left decoder
}

}  // namespace
}  // namespace bantam::testing
