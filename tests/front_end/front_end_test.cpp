// The front end on real models and recordings: the bundled ones, and published ones where ../shared/models is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "bantam/audio.h"
#include "diagnose/allocations/allocation_counter.h"
#include "io/wav.h"
#include "support/models.h"

namespace bantam::testing {
namespace {

using namespace bantam::audio;  // NOLINT: the layer under test

std::vector<std::int16_t> sound(const std::filesystem::path& path) {
  const auto read = io::read_sound(path.string());
  EXPECT_TRUE(read) << path;
  return read ? io::to_int16(read->samples) : std::vector<std::int16_t>();
}

std::vector<std::int16_t> bundled_sound(const std::string& name) { return sound("models/inputs/" + name + ".wav"); }

FrontEndConfig bundled_config() {
  auto config = read_front_end_file("models/front-end.toml");
  EXPECT_TRUE(config) << config.error().message;
  return *config;
}

FrontEnd open(FrontEndConfig config) {
  auto plan = FrontEndPlan::make(std::move(config));
  EXPECT_TRUE(plan) << plan.error().message;
  auto front_end = FrontEnd::create(std::move(*plan));
  EXPECT_TRUE(front_end) << front_end.error().message;
  return std::move(*front_end);
}

/// What came out of a run.
struct Heard {
  std::vector<std::int16_t> samples;
  std::vector<float> probabilities;
  std::vector<int> words;
  std::vector<std::uint64_t> speech_starts;
  int speech_ends = 0;
  bool pre_roll_is_what_came_before = true;

  bool operator==(const Heard&) const = default;
};

void take(const Frame& frame, Heard& heard) {
  if (frame.speech_started) {
    heard.speech_starts.push_back(frame.position - frame.pre_roll.size());
    heard.pre_roll_is_what_came_before =
        heard.pre_roll_is_what_came_before && frame.pre_roll.size() <= heard.samples.size() &&
        std::equal(frame.pre_roll.rbegin(), frame.pre_roll.rend(), heard.samples.rbegin());
  }
  heard.speech_ends += frame.speech_ended ? 1 : 0;
  heard.samples.insert(heard.samples.end(), frame.samples.begin(), frame.samples.end());
  heard.probabilities.push_back(frame.speech_probability);
  heard.probabilities.push_back(frame.wake_probability);
  if (frame.wake_word > 0) heard.words.push_back(frame.wake_word);
}

void fetch_all(FrontEnd& front_end, Heard& heard) {
  Frame frame;
  while (true) {
    const Fetched fetched = front_end.fetch(&frame);
    ASSERT_TRUE(fetched.status.ok()) << fetched.status.message;
    if (!fetched.ready) return;
    take(frame, heard);
  }
}

Heard run(FrontEnd& front_end, std::span<const std::int16_t> samples, std::size_t chunk = 512) {
  Heard heard;
  while (!samples.empty()) {
    samples = samples.subspan(front_end.feed(samples.first(std::min(chunk, samples.size()))));
    fetch_all(front_end, heard);
  }
  return heard;
}

double power(std::span<const std::int16_t> samples) {
  double sum = 0;
  for (const std::int16_t s : samples) sum += static_cast<double>(s) * s;
  return sum / static_cast<double>(samples.size());
}

std::vector<std::int16_t> noise(std::size_t n, int amplitude) {
  std::minstd_rand random(11);
  std::uniform_int_distribution<int> uniform(-amplitude, amplitude);
  std::vector<std::int16_t> samples(n);
  for (auto& s : samples) s = static_cast<std::int16_t>(uniform(random));
  return samples;
}

TEST(FrontEnd, HearsTheBundledWordsAndSpeech) {
  FrontEnd front_end = open(bundled_config());
  Heard heard = run(front_end, bundled_sound("mixture"));
  EXPECT_EQ(heard.words, std::vector<int>{1}) << "the recording says yes";
  ASSERT_EQ(heard.speech_starts.size(), 1U);
  // inputs/expected.json: speech from 0.2 s.
  EXPECT_NEAR(static_cast<double>(heard.speech_starts[0]) / kSampleRate, 0.2, 0.1);
  EXPECT_TRUE(heard.pre_roll_is_what_came_before);
  front_end.reset();
  heard = run(front_end, bundled_sound("keyword-stop"));
  EXPECT_EQ(heard.words, std::vector<int>{2});
  for (const char* name : {"noise", "keyword-left"}) {
    front_end.reset();
    heard = run(front_end, bundled_sound(name));
    EXPECT_TRUE(heard.words.empty()) << name;
  }
  front_end.reset();
  EXPECT_TRUE(run(front_end, bundled_sound("noise")).speech_starts.empty());
}

TEST(FrontEnd, ResultsDoNotDependOnHowTheSoundIsFed) {
  const std::vector<std::int16_t> samples = bundled_sound("mixture");
  FrontEnd front_end = open(bundled_config());
  const Heard expected = run(front_end, samples, samples.size());
  EXPECT_FALSE(expected.samples.empty());
  for (const std::size_t chunk : {1U, 160U, 512U, 5000U}) {
    front_end.reset();
    EXPECT_TRUE(run(front_end, samples, chunk) == expected) << "chunk " << chunk;
  }
}

TEST(FrontEnd, FramesOfAnySizeCarryTheSameSound) {
  const std::vector<std::int16_t> samples = bundled_sound("mixture");
  FrontEnd wide = open(bundled_config());
  const Heard expected = run(wide, samples);
  for (const int frame : {160, 480}) {
    FrontEndConfig config = bundled_config();
    config.frame = frame;
    FrontEnd front_end = open(std::move(config));
    const Heard heard = run(front_end, samples);
    // The denoiser's hop of 256 is no divisor of these frames: the sound comes a little later.
    const auto late = static_cast<std::size_t>(256 - std::gcd(256, frame));
    ASSERT_GT(heard.samples.size(), expected.samples.size() - 2048);
    for (std::size_t i = late; i < heard.samples.size() && i - late < expected.samples.size(); ++i)
      ASSERT_EQ(heard.samples[i], expected.samples[i - late]) << "frame " << frame << " sample " << i;
    EXPECT_EQ(heard.words, expected.words) << "frame " << frame;
  }
}

TEST(FrontEnd, ReducesNoise) {
  FrontEnd front_end = open(bundled_config());
  const std::vector<std::int16_t> samples = bundled_sound("noise");
  const Heard heard = run(front_end, samples);
  EXPECT_LT(power(heard.samples), 0.25 * power(samples));
}

TEST(FrontEnd, NeedsExactlyTheMemoryItPromises) {
  auto plan = FrontEndPlan::make(bundled_config());
  ASSERT_TRUE(plan);
  const FrontEndMemory memory = plan->memory();
  std::size_t parts = 0;
  for (const auto& part : memory.parts) parts += part.bytes;
  EXPECT_EQ(parts, memory.block_bytes);
  EXPECT_GE(memory.parts.back().bytes, memory.fleet.arena_bytes);
  constexpr std::size_t kGuard = 64;
  constexpr std::byte kCanary{0xA5};
  const std::size_t total = memory.block_bytes + 2 * kGuard;
  std::unique_ptr<void, decltype(&std::free)> owner(std::aligned_alloc(64, (total + 63) / 64 * 64), &std::free);
  const std::span<std::byte> all(static_cast<std::byte*>(owner.get()), total);
  std::fill(all.begin(), all.end(), kCanary);
  const auto block = all.subspan(kGuard, memory.block_bytes);

  auto short_plan = FrontEndPlan::make(bundled_config());
  const auto refused = FrontEnd::place(std::move(*short_plan), block.first(block.size() - 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StatusCode::kArenaTooSmall);
  EXPECT_NE(refused.error().message.find(std::to_string(memory.block_bytes)), std::string::npos);
  auto askew_plan = FrontEndPlan::make(bundled_config());
  const auto misaligned = FrontEnd::place(std::move(*askew_plan), all.subspan(kGuard + 16, memory.block_bytes));
  ASSERT_FALSE(misaligned);
  EXPECT_EQ(misaligned.error().code, StatusCode::kMisaligned);

  auto front_end = FrontEnd::place(std::move(*plan), block);
  ASSERT_TRUE(front_end) << front_end.error().message;
  FrontEnd own = open(bundled_config());
  EXPECT_TRUE(run(*front_end, bundled_sound("mixture")) == run(own, bundled_sound("mixture")));
  for (std::size_t i = 0; i < kGuard; ++i) {
    ASSERT_EQ(all[i], kCanary);
    ASSERT_EQ(all[total - 1 - i], kCanary);
  }
}

TEST(FrontEnd, AllocatesNothingAfterStart) {
  if (!diagnose::counts_allocations()) GTEST_SKIP() << "sanitizers replace the allocator themselves";
  FrontEndConfig config = bundled_config();
  config.input = {.format = "MR", .sample_rate = 48000};
  FrontEnd front_end = open(std::move(config));
  const std::vector<std::int16_t> samples = noise(2 * 48000 * 2, 8000);
  std::span<const std::int16_t> rest = samples;
  Frame frame;
  int frames = 0;
  const std::uint64_t before = diagnose::allocation_count();
  while (!rest.empty()) {
    rest = rest.subspan(front_end.feed(rest.first(std::min<std::size_t>(960, rest.size()))));
    while (front_end.fetch(&frame).ready) ++frames;
  }
  front_end.feed_or_drop(samples);
  static_cast<void>(front_end.set_wake_threshold(1, 0.9F).ok());
  static_cast<void>(front_end.set_enabled(Stage::kNoise, false).ok());
  while (front_end.fetch(&frame).ready) ++frames;
  front_end.reset();
  EXPECT_EQ(diagnose::allocation_count() - before, 0U);
  EXPECT_GT(frames, 60);
  EXPECT_GT(front_end.plan().memory().echo_heap_bytes, 10000U) << "the echo canceller's state was counted";
}

TEST(FrontEnd, CountsWhatItDrops) {
  FrontEnd front_end = open(bundled_config());
  const std::vector<std::int16_t> samples = noise(20000, 1000);
  const std::size_t taken = front_end.feed(samples);
  EXPECT_LT(taken, samples.size());
  EXPECT_EQ(front_end.dropped(), 0U) << "feed leaves it to the caller";
  front_end.feed_or_drop(std::span(samples).first(100));
  EXPECT_EQ(front_end.dropped(), 100U);
  Frame frame;
  ASSERT_TRUE(front_end.fetch(&frame).ready);
  EXPECT_EQ(frame.ring_free, 0.0F);
  EXPECT_EQ(front_end.feed(samples), static_cast<std::size_t>(front_end.plan().config().frame));
}

TEST(FrontEnd, CancelsTheEchoOfARoom) {
  FrontEndConfig config;
  config.input.format = "RM";
  FrontEnd front_end = open(std::move(config));
  EXPECT_EQ(front_end.plan().pipeline(), "[input] -> |AEC(speex)| -> [output]");
  const std::vector<std::int16_t> far = noise(16000 * 6, 6000);
  std::vector<std::int16_t> both;
  for (std::size_t t = 0; t < far.size(); ++t) {
    double echo = 0;
    for (const auto& [delay, gain] : {std::pair{40U, 0.5}, std::pair{333U, 0.3}, std::pair{900U, -0.2}})
      if (t >= delay) echo += gain * far[t - delay];
    both.push_back(far[t]);
    both.push_back(static_cast<std::int16_t>(echo));
  }
  const Heard heard = run(front_end, both);
  std::vector<std::int16_t> microphone;
  for (std::size_t t = 1; t < both.size(); t += 2) microphone.push_back(both[t]);
  const auto last_second = [](const std::vector<std::int16_t>& s) { return std::span(s).last(16000); };
  const double loss = 10 * std::log10(power(last_second(microphone)) / power(last_second(heard.samples)));
  EXPECT_GT(loss, 20) << "dB in the last second";
  EXPECT_GT(front_end.echo_return_loss_db(), 5);
}

TEST(FrontEnd, CancelsTheEchoOfARecordingWhoseDelayIsKnown) {
  if (!have_shared_models()) GTEST_SKIP() << kNoSharedModels;
  const std::vector<std::int16_t> microphone = sound(shared_folder() / "inputs" / "aec-mic-16k.wav");
  const std::vector<std::int16_t> reference = sound(shared_folder() / "inputs" / "aec-lpb-16k.wav");
  std::vector<std::int16_t> both;
  for (std::size_t t = 0; t < std::min(microphone.size(), reference.size()); ++t) {
    both.push_back(microphone[t]);
    both.push_back(reference[t]);
  }
  FrontEndConfig config;
  config.input.format = "MR";
  config.aec.delay_ms = 100;  // the loudspeaker is heard 116 ms late
  FrontEnd front_end = open(std::move(config));
  const Heard heard = run(front_end, both);
  EXPECT_GT(front_end.best_echo_return_loss_db(), 10) << "dB before the near speaker begins";
  front_end.reset();
  EXPECT_EQ(run(front_end, both, 77).samples.size(), heard.samples.size());
}

TEST(FrontEnd, StagesCanBeSwitchedWhileItRuns) {
  FrontEnd front_end = open(bundled_config());
  EXPECT_FALSE(front_end.set_enabled(Stage::kEcho, true).ok()) << "there is no reference";
  EXPECT_FALSE(front_end.set_enabled(Stage::kWake, false, 1).ok());
  for (const Stage stage : {Stage::kNoise, Stage::kVoice, Stage::kWake}) {
    EXPECT_TRUE(front_end.enabled(stage));
    ASSERT_TRUE(front_end.set_enabled(stage, false).ok());
    EXPECT_FALSE(front_end.enabled(stage));
  }
  const std::vector<std::int16_t> samples = bundled_sound("mixture");
  const Heard off = run(front_end, samples);
  EXPECT_TRUE(off.words.empty());
  EXPECT_TRUE(off.speech_starts.empty());
  EXPECT_TRUE(std::equal(off.samples.begin(), off.samples.end(), samples.begin())) << "sound passes unchanged";
  for (const Stage stage : {Stage::kNoise, Stage::kVoice, Stage::kWake})
    ASSERT_TRUE(front_end.set_enabled(stage, true).ok());
  EXPECT_EQ(run(front_end, samples).words, std::vector<int>{1}) << "nothing is left of the pause";
}

TEST(FrontEnd, ThresholdsCanBeChangedWhileItRuns) {
  FrontEnd front_end = open(bundled_config());
  EXPECT_FALSE(front_end.set_wake_threshold(0, 0.5F).ok());
  EXPECT_FALSE(front_end.set_wake_threshold(3, 0.5F).ok());
  for (const float bad : {0.39F, 1.0F, std::nanf("")}) EXPECT_FALSE(front_end.set_wake_threshold(1, bad).ok()) << bad;
  ASSERT_TRUE(front_end.set_wake_threshold(1, 0.9999F).ok());
  EXPECT_TRUE(run(front_end, bundled_sound("keyword-yes")).words.empty());
  front_end.reset();
  ASSERT_TRUE(front_end.set_wake_threshold(1, 0.5F).ok());
  EXPECT_EQ(run(front_end, bundled_sound("keyword-yes")).words, std::vector<int>{1});
}

TEST(FrontEnd, StrictRefusesWhatWouldBeChanged) {
  FrontEndConfig config = bundled_config();
  config.input.format = "MMN";
  config.vad.min_speech_ms = 1;
  const auto plan = FrontEndPlan::make(config, {.strict = true});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("there is no beam forming"), std::string::npos) << plan.error().message;
  EXPECT_NE(plan.error().message.find("vad.min_speech_ms: 1 would become 32"), std::string::npos);
  const auto changed = FrontEndPlan::make(config);
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->changes().size(), 2U);
}

TEST(FrontEnd, RefusesModelsThatDoNotFitTheirStage) {
  const auto error_of = [](auto&& spoil) {
    FrontEndConfig config = bundled_config();
    spoil(config);
    const auto plan = FrontEndPlan::make(std::move(config));
    return plan ? std::string("accepted") : plan.error().message;
  };
  EXPECT_NE(error_of([](auto& c) { c.fleet.models[0].states.clear(); }).find("has 5 inputs"), std::string::npos);
  EXPECT_NE(error_of([](auto& c) { std::swap(c.ns.model, c.wake[0].model); }), "accepted");
  EXPECT_NE(error_of([](auto& c) { c.wake[0].classes = {0, 12}; }).find("class 12"), std::string::npos);
  EXPECT_NE(error_of([](auto& c) { c.wake[0].output = "nothing"; }).find("'nothing'"), std::string::npos);
  EXPECT_NE(error_of([](auto& c) { c.wake[0].hop_ms = 1001; }).find("hop_ms = 1001"), std::string::npos);
  EXPECT_NE(error_of([](auto& c) { c.vad.kind = DetectorKind::kMicroFeatures; }).find("feature rows"),
            std::string::npos);
  EXPECT_NE(error_of([](auto& c) { c.ns.kind = NoiseKind::kMask; }), "accepted") << "256 bins fit no transform";
  EXPECT_NE(error_of([](auto& c) { c.ns.second_model = "spare"; }).find("'spare'"), std::string::npos);
}

TEST(FrontEnd, OneThreadFeedsWhileAnotherFetches) {
  const std::vector<std::int16_t> samples = bundled_sound("mixture");
  FrontEnd alone = open(bundled_config());
  const Heard expected = run(alone, samples);
  FrontEnd front_end = open(bundled_config());
  std::thread feeder([&] {
    std::span<const std::int16_t> rest = samples;
    while (!rest.empty()) {
      rest = rest.subspan(front_end.feed(rest.first(std::min<std::size_t>(333, rest.size()))));
      static_cast<void>(front_end.set_wake_threshold(2, 0.6F).ok());
      std::this_thread::yield();
    }
  });
  Heard heard;
  while (heard.samples.size() < expected.samples.size()) {
    fetch_all(front_end, heard);
    std::this_thread::yield();
  }
  feeder.join();
  EXPECT_TRUE(heard == expected);
}

TEST(FrontEnd, OpensAndClosesFiftyTimesAndGivesItsMemoryBack) {
  FrontEndConfig config = bundled_config();
  config.input.format = "MR";
  const std::vector<std::int16_t> samples = noise(4096, 3000);
  std::int64_t held = 0;
  for (int round = 0; round < 50; ++round) {
    {
      FrontEnd front_end = open(config);
      EXPECT_FALSE(run(front_end, samples).samples.empty());
    }
    // Sanitizers do not let allocations be counted; they find what is lost themselves.
    const auto now = static_cast<std::int64_t>(diagnose::allocation_count() - diagnose::deallocation_count());
    // The first round makes what the libraries keep for good.
    if (round == 0) held = now;
    ASSERT_EQ(now, held) << "pieces of memory held after round " << round;
  }
}

FrontEndConfig shared_config(const std::string& text) {
  auto config = parse_front_end_file(text, "test.toml", shared_folder());
  EXPECT_TRUE(config) << config.error().message;
  return *config;
}

TEST(FrontEnd, OkayNabuFiresOnceOnItsRecordingAndNeverOnOthers) {
  if (!have_shared_models()) GTEST_SKIP() << kNoSharedModels;
  FrontEnd front_end = open(shared_config(R"(
[[model]]
name = "nabu"
path = "mww-okay-nabu-int8.tflite"
[[model]]
name = "voice"
path = "mww-vad-int8.tflite"
[vad]
model = "voice"
[[wake]]
model = "nabu"
words = ["okay nabu"]
threshold = 0.85
smoothing = 5
)"));
  const auto& parts = front_end.plan().memory().parts;
  EXPECT_EQ(std::count_if(parts.begin(), parts.end(), [](const auto& p) { return p.name == "features"; }), 1);
  int recordings = 0;
  for (const auto& entry : std::filesystem::directory_iterator(shared_folder() / "inputs")) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with("-16k.wav")) continue;
    front_end.reset();
    const Heard heard = run(front_end, sound(entry.path()));
    EXPECT_EQ(heard.words.size(), name == "okay-nabu-16k.wav" ? 1U : 0U) << name;
    ++recordings;
  }
  EXPECT_GT(recordings, 5);
}

TEST(FrontEnd, TakesSpectrumAndMaskModelsAndWavesWithContext) {
  if (!have_shared_models()) GTEST_SKIP() << kNoSharedModels;
  const std::vector<std::int16_t> samples = sound(shared_folder() / "inputs" / "noise-16k.wav");
  for (const char* text : {R"(
[[model]]
name = "noise"
path = "gtcrn-stream.onnx"
states = { conv_cache = "conv_cache_out", tra_cache = "tra_cache_out", inter_cache = "inter_cache_out" }
[[model]]
name = "voice"
path = "silero-vad.onnx"
shapes = { input = [1, 576], state = [2, 1, 128] }
values = { sr = 16000 }
states = { state = "stateN" }
[ns]
model = "noise"
[vad]
model = "voice"
hop_ms = 32
)",
                           R"(
[[model]]
name = "noise"
path = "dtln-1.onnx"
states = { input_3 = "tf_op_layer_stack_2" }
[[model]]
name = "second"
path = "dtln-2.onnx"
states = { input_5 = "tf_op_layer_stack_5" }
[ns]
model = "noise"
second_model = "second"
window = "rectangular"
hop = 128
)",
                           R"(
[[model]]
name = "noise"
path = "dtln-1.onnx"
states = { input_3 = "tf_op_layer_stack_2" }
[ns]
model = "noise"
)"}) {
    FrontEnd front_end = open(shared_config(text));
    const Heard heard = run(front_end, samples);
    ASSERT_FALSE(heard.samples.empty());
    EXPECT_LT(power(heard.samples), 0.5 * power(samples)) << text;
    EXPECT_TRUE(heard.speech_starts.empty()) << text;
    front_end.reset();
    EXPECT_TRUE(run(front_end, samples, 1000) == heard) << text;
  }
}

}  // namespace
}  // namespace bantam::testing
