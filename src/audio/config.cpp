// check(): what a configuration asks for and cannot have, replaced and told.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "bantam/audio.h"
#include "dsp/resampler.h"

namespace bantam::audio {
namespace {

constexpr int kFrameUnit = 32;
constexpr int kMinFrame = 64;
constexpr int kMaxFrame = 4096;
constexpr int kMaxRingMs = 10000;
constexpr int kMinFilterMs = 16;
constexpr int kMaxFilterMs = 500;
constexpr int kMaxEchoDelayMs = 1000;
constexpr int kMinSpeechMs = 32;
constexpr int kMinNoiseMs = 64;
constexpr int kMaxVoiceMs = 60000;
constexpr int kMaxDelayMs = 2000;
constexpr int kMaxSmoothing = 100;
constexpr int kMaxStepMs = 30;

class Checker {
 public:
  explicit Checker(FrontEndConfig& config) : config_(config) {}

  Result<std::vector<ConfigChange>> run() {
    if (auto done = check_input(); !done) return fail(std::move(done.error()));
    check_frame();
    check_echo();
    if (auto done = check_stages(); !done) return fail(std::move(done.error()));
    drop_unused_models();
    return std::move(changes_);
  }

 private:
  void changed(std::string field, std::string from, std::string to, std::string why) {
    changes_.push_back({std::move(field), std::move(from), std::move(to), std::move(why)});
  }

  template <typename T>
  void clamp(const std::string& field, T& value, T low, T high) {
    // NaN is not in any range.
    const T wanted = value >= low ? std::min(value, high) : low;
    if (wanted == value) return;
    changed(field, fmt::format("{}", value), fmt::format("{}", wanted), fmt::format("the range is {}..{}", low, high));
    value = wanted;
  }

  Result<void> check_input() {
    InputConfig& input = config_.input;
    const auto bad = [](std::string message, std::string remedy) {
      return fail(StatusCode::kInvalidArgument, std::move(message), std::move(remedy));
    };
    constexpr const char* kForm = "write a letter per channel: M microphone, R playback reference, N not used";
    if (input.format.empty() || input.format.size() > kMaxChannels)
      return bad(fmt::format("input.format has {} channels, 1 to {} are possible", input.format.size(), kMaxChannels),
                 kForm);
    for (const char letter : input.format)
      if (letter != 'M' && letter != 'R' && letter != 'N')
        return bad(fmt::format("input.format has a channel with code {}, which is none of M, R, N",
                               static_cast<int>(static_cast<unsigned char>(letter))),
                   kForm);
    if (std::count(input.format.begin(), input.format.end(), 'M') == 0)
      return bad(fmt::format("input.format \"{}\" has no microphone", input.format), kForm);
    if (!dsp::Resampler::supports(input.sample_rate, kSampleRate))
      return bad(fmt::format("input.sample_rate {} cannot be turned into {}", input.sample_rate, kSampleRate),
                 "rates from 1000 to 768000 Hz are possible");
    choose_channel('M', "input.microphone", "microphones", "there is no beam forming", input.microphone);
    choose_channel('R', "input.reference", "references", "the echo canceller takes one", input.reference);
    return {};
  }

  void choose_channel(char letter, const std::string& field, const char* plural, const char* why, int& index) {
    const auto count = static_cast<int>(std::count(config_.input.format.begin(), config_.input.format.end(), letter));
    if (count > 0) clamp(field, index, 0, count - 1);
    if (count > 1) changed("input.format", fmt::format("{} {}", count, plural), fmt::format("number {}", index), why);
  }

  void check_frame() {
    clamp("frame", config_.frame, kMinFrame, kMaxFrame);
    if (const int rounded = (config_.frame + kFrameUnit / 2) / kFrameUnit * kFrameUnit; rounded != config_.frame) {
      changed("frame", std::to_string(config_.frame), std::to_string(rounded),
              fmt::format("frames are multiples of {} samples", kFrameUnit));
      config_.frame = rounded;
    }
    // Less than two frames would drop sound while one is processed.
    clamp("input.ring_ms", config_.input.ring_ms, 2 * config_.frame * 1000 / kSampleRate + 1, kMaxRingMs);
  }

  void check_echo() {
    EchoConfig& aec = config_.aec;
    const bool reference = config_.input.format.find('R') != std::string::npos;
    if (!aec.enabled) aec.enabled = reference;
    if (*aec.enabled && !reference) {
      changed("aec.enabled", "true", "false",
              fmt::format("input.format \"{}\" has no playback reference (R)", config_.input.format));
      aec.enabled = false;
    } else if (!*aec.enabled && reference) {
      changed("input.format", "R", "N", "without echo cancellation the playback reference is not used");
      std::replace(config_.input.format.begin(), config_.input.format.end(), 'R', 'N');
    }
    if (!*aec.enabled) return;
    clamp("aec.filter_ms", aec.filter_ms, kMinFilterMs, kMaxFilterMs);
    clamp("aec.delay_ms", aec.delay_ms, 0, kMaxEchoDelayMs);
  }

  /// The session must exist and belong to one stage only, since it has one state.
  Result<void> claim(const std::string& stage, const std::string& session) {
    const FleetSpec& fleet = config_.fleet;
    const bool exists = fleet.sessions.empty()
                            ? std::any_of(fleet.models.begin(), fleet.models.end(),
                                          [&](const ModelSpec& m) { return session_name(m) == session; })
                            : std::any_of(fleet.sessions.begin(), fleet.sessions.end(),
                                          [&](const SessionSpec& s) { return s.name == session; });
    if (!exists)
      return fail(StatusCode::kNotFound,
                  fmt::format("{} names session '{}', which the fleet does not have", stage, session),
                  "add a [[model]] of that name");
    if (!claimed_.insert(session).second)
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("{} uses session '{}', as another stage does", stage, session),
                  "add a [[session]] per stage; sessions of one model share its weights");
    return {};
  }

  static std::string session_name(const ModelSpec& model) {
    return model.name.empty() ? model.path.stem().string() : model.name;
  }

  Result<void> check_stages() {
    NoiseConfig& ns = config_.ns;
    ns.enabled = ns.enabled && !ns.model.empty();
    if (ns.enabled) {
      if (auto done = claim("ns.model", ns.model); !done) return done;
      if (!ns.second_model.empty())
        if (auto done = claim("ns.second_model", ns.second_model); !done) return done;
      clamp("ns.hop", ns.hop, 0, kMaxFrame);
    }
    VoiceConfig& vad = config_.vad;
    vad.enabled = vad.enabled && !vad.model.empty();
    if (vad.enabled) {
      if (auto done = claim("vad.model", vad.model); !done) return done;
      check_detector("vad", vad);
      clamp("vad.threshold", vad.threshold, 0.0F, 1.0F);
      clamp("vad.min_speech_ms", vad.min_speech_ms, kMinSpeechMs, kMaxVoiceMs);
      clamp("vad.min_noise_ms", vad.min_noise_ms, kMinNoiseMs, kMaxVoiceMs);
      clamp("vad.delay_ms", vad.delay_ms, 0, kMaxDelayMs);
    }
    return check_wake();
  }

  void check_detector(const std::string& stage, DetectorConfig& detector) {
    clamp(stage + ".step_ms", detector.step_ms, 1, kMaxStepMs);
    clamp(stage + ".hop_ms", detector.hop_ms, 0, kMaxVoiceMs);
  }

  Result<void> check_wake() {
    std::erase_if(config_.wake, [&](const WakeConfig& wake) {
      if (wake.enabled && !wake.model.empty()) return false;
      wake_off_.push_back(wake.model);
      return true;
    });
    if (config_.wake.size() > kMaxWakeModels)
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("there are {} wake models, {} are possible", config_.wake.size(), kMaxWakeModels));
    std::size_t words = 0;
    for (std::size_t i = 0; i < config_.wake.size(); ++i) {
      WakeConfig& wake = config_.wake[i];
      const std::string stage = fmt::format("wake[{}]", i + 1);
      if (auto done = claim(stage + ".model", wake.model); !done) return done;
      check_detector(stage, wake);
      clamp(stage + ".threshold", wake.threshold, kMinWakeThreshold, kMaxWakeThreshold);
      clamp(stage + ".smoothing", wake.smoothing, 1, kMaxSmoothing);
      clamp(stage + ".refractory_ms", wake.refractory_ms, 0, kMaxVoiceMs);
      if (wake.words.empty()) wake.words.push_back(wake.model);
      if (wake.classes.empty())
        for (std::size_t w = 0; w < wake.words.size(); ++w) wake.classes.push_back(static_cast<int>(w));
      if (wake.classes.size() != wake.words.size())
        return fail(StatusCode::kInvalidArgument,
                    fmt::format("{} has {} words but {} classes", stage, wake.words.size(), wake.classes.size()),
                    "give one class per word, or none");
      words += wake.words.size();
    }
    if (words <= kMaxWakeWords) return {};
    return fail(StatusCode::kInvalidArgument,
                fmt::format("there are {} wake words, {} are possible", words, kMaxWakeWords));
  }

  /// Models of stages that are switched off cost nothing. Sessions that no stage names are the application's and stay.
  void drop_unused_models() {
    if (!config_.fleet.sessions.empty()) return;
    std::set<std::string> off;
    const auto note = [&](bool enabled, const std::string& session) {
      if (!enabled && !session.empty() && claimed_.count(session) == 0) off.insert(session);
    };
    note(config_.ns.enabled, config_.ns.model);
    note(config_.ns.enabled, config_.ns.second_model);
    note(config_.vad.enabled, config_.vad.model);
    for (const std::string& session : wake_off_) note(false, session);
    std::erase_if(config_.fleet.models, [&](const ModelSpec& m) { return off.count(session_name(m)) != 0; });
  }

  FrontEndConfig& config_;
  std::vector<ConfigChange> changes_;
  std::set<std::string> claimed_;
  std::vector<std::string> wake_off_;
};

}  // namespace

Result<std::vector<ConfigChange>> check(FrontEndConfig& config) { return Checker(config).run(); }

}  // namespace bantam::audio
