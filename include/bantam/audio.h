// The streaming front end of a speech device: echo cancellation, noise suppression, voice activity and wake words.
//
//   auto config = bantam::audio::read_front_end_file("front-end.toml");
//   auto plan = bantam::audio::FrontEndPlan::make(*config);      // says what it changes and what memory it needs
//   auto front_end = bantam::audio::FrontEnd::create(std::move(*plan));
//   front_end->feed(microphone_samples);                         // interleaved int16, any number
//   bantam::audio::Frame frame;
//   while (front_end->fetch(&frame).ready) use(frame);           // config.frame samples of 16 kHz each
//
// Results depend on the samples alone, not on how they are cut into feeds. Memory: one block of memory().block_bytes,
// known before it exists, holds every buffer and the arena of all models; SpeexDSP allocates its echo canceller itself,
// when the front end is created (echo_heap_bytes). After that nothing allocates, on any path.
// Threads: one thread may feed while another fetches. Thresholds and switches may be set from any thread; they count
// from the next frame. reset() needs both to rest. Errors: Result and Status; nothing throws. Back pressure is told by
// return values and counters, never by a log.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bantam/compiler.h"
#include "bantam/error.h"
#include "bantam/runtime.h"

namespace bantam::audio {

/// Hz, of everything behind the input.
inline constexpr int kSampleRate = 16000;
inline constexpr int kMaxChannels = 16;
inline constexpr int kMaxWakeModels = 4;
inline constexpr int kMaxWakeWords = 16;  ///< of all wake models together
inline constexpr float kMinWakeThreshold = 0.4F;
inline constexpr float kMaxWakeThreshold = 0.9999F;

struct InputConfig {
  /// A letter per channel of the interleaved input: M microphone, R playback reference, N not used.
  std::string format = "M";
  int sample_rate = kSampleRate;  ///< other rates are resampled
  int microphone = 0;             ///< which of the M channels is used, counted from 0
  int reference = 0;              ///< which of the R channels
  int ring_ms = 500;              ///< sound that may wait between feed and fetch
};

/// Echo cancellation by SpeexDSP's adaptive filter.
struct EchoConfig {
  std::optional<bool> enabled{};  ///< absent: when the input has a reference
  int filter_ms = 128;            ///< longest echo that is cancelled, counted from delay_ms
  int delay_ms = 0;               ///< by which the echo is known to be late at least; costs memory, no time
  bool suppress_residual = true;  ///< also attenuate what the filter leaves over
};

/// How a noise-suppression model takes sound.
enum class NoiseKind : std::uint8_t {
  kDetect,    ///< from the model's ports
  kWave,      ///< a frame of samples in, a frame of samples out
  kSpectrum,  ///< size/2+1 complex bins in and out
  kMask,      ///< magnitudes in, factors for them out
};

enum class AnalysisWindow : std::uint8_t { kRectangular, kHann, kSqrtHann, kHamming };

struct NoiseConfig {
  bool enabled = true;
  std::string model{};  ///< a session of the fleet; empty: none
  NoiseKind kind = NoiseKind::kDetect;
  /// Spectrum and mask: samples from transform to transform; 0: half a transform.
  int hop = 0;
  AnalysisWindow window = AnalysisWindow::kSqrtHann;
  /// A session that turns each block of masked sound into the block to be overlapped and added as it is.
  std::string second_model{};
};

/// Which sound a detector hears.
enum class Source : std::uint8_t {
  kEnhanced,
  kRaw,  ///< behind echo cancellation, before noise suppression
};

/// How a detector's model takes sound.
enum class DetectorKind : std::uint8_t {
  kDetect,         ///< int8 inputs in rows of 40 are features, float ones samples
  kWave,           ///< the newest samples, full scale 1
  kMicroFeatures,  ///< rows of 40 fixed-point features (dsp/micro_features.h)
};

/// What a model's output numbers are.
enum class Scores : std::uint8_t { kProbability, kLogProbability, kLogit };

struct DetectorConfig {
  bool enabled = true;
  std::string model{};  ///< a session of the fleet; empty: none
  DetectorKind kind = DetectorKind::kDetect;
  Source source = Source::kEnhanced;
  int step_ms = 10;      ///< from feature row to feature row
  int hop_ms = 0;        ///< from invoke to invoke; 0: the whole input for models with state, else a tenth of it
  std::string output{};  ///< empty: the first one
  Scores scores = Scores::kProbability;
};

struct VoiceConfig : DetectorConfig {
  int class_index = -1;  ///< of speech in the output; -1: the last one
  float threshold = 0.5F;
  int min_speech_ms = 128;  ///< uninterrupted speech before it counts
  int min_noise_ms = 1000;  ///< uninterrupted silence before speech has ended
  int delay_ms = 128;       ///< sound before the first speech frame that comes with it
};

struct WakeConfig : DetectorConfig {
  std::vector<std::string> words{};
  std::vector<int> classes{};  ///< of the words in the output; empty: 0, 1, ...
  float threshold = 0.6F;
  int smoothing = 3;         ///< invokes over which probabilities are averaged
  int refractory_ms = 1000;  ///< after a word none is reported for this long
};

struct FrontEndConfig {
  FleetSpec fleet{};  ///< the models; may hold others, for the application itself
  int frame = 512;    ///< samples of a fetched frame
  InputConfig input{};
  EchoConfig aec{};
  NoiseConfig ns{};
  VoiceConfig vad{};
  std::vector<WakeConfig> wake{};
};

/// Something that the configuration asks for and does not get.
struct ConfigChange {
  std::string field;
  std::string from;
  std::string to;
  std::string why;
};

/// Replaces what cannot be by what comes closest, and lists every change. Fails where nothing comes close.
Result<std::vector<ConfigChange>> check(FrontEndConfig& config);

/// A fleet file with the further tables [input], [aec], [ns], [vad] and [[wake]], whose keys are the fields above.
/// Unknown keys, wrong types and values are reported together, with their lines.
Result<FrontEndConfig> read_front_end_file(const std::filesystem::path& path);
Result<FrontEndConfig> parse_front_end_file(std::string_view text, const std::string& name,
                                            const std::filesystem::path& directory);

/// Bytes by kind. The parts add up to block_bytes.
struct FrontEndMemory {
  struct Part {
    std::string name;
    std::size_t bytes = 0;
  };
  std::size_t block_bytes = 0;
  std::vector<Part> parts{};        ///< buffers by stage, then the arena of all models
  Requirements fleet{};             ///< what the arena is made of, and the weights outside it
  std::size_t control_bytes = 0;    ///< the front end's own object, on the heap
  std::size_t echo_heap_bytes = 0;  ///< measured: taken by SpeexDSP at creation
  bool echo_heap_counted = true;    ///< false where the C library cannot tell, as under sanitizers
};

struct FrontEndOptions {
  bool strict = false;  ///< refuse a configuration that would have to be changed
  Backend backend = Backend::kFast;
};

/// A checked configuration with its models compiled: everything but memory.
class FrontEndPlan {
 public:
  static Result<FrontEndPlan> make(FrontEndConfig config, const FrontEndOptions& options = {});
  FrontEndPlan(FrontEndPlan&&) noexcept;
  FrontEndPlan& operator=(FrontEndPlan&&) noexcept;
  ~FrontEndPlan();

  const FrontEndConfig& config() const noexcept;  ///< as changed
  const std::vector<ConfigChange>& changes() const noexcept;
  const FrontEndMemory& memory() const noexcept;
  /// "[input] -> |AEC(speex)| -> |NS(denoise)| -> |VAD(voice)| -> |WAKE(keyword: yes)| -> [output]"
  const std::string& pipeline() const noexcept;

 private:
  friend class FrontEnd;
  friend class FrontEndPlanner;
  struct Parts;
  explicit FrontEndPlan(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// What fetch gives. The spans stay valid until the next fetch.
struct Frame {
  std::span<const std::int16_t> samples{};   ///< config.frame samples of enhanced sound
  std::span<const std::int16_t> pre_roll{};  ///< the sound right before `samples`; on the first frame of speech only
  std::uint64_t position = 0;                ///< of samples[0] in the output since creation or reset
  bool speech = false;                       ///< at the end of the frame
  bool speech_started = false;               ///< in this frame
  bool speech_ended = false;
  float speech_probability = 0;  ///< the newest
  int wake_word = 0;             ///< heard in this frame: counted from 1 over all wake models; 0: none
  float wake_probability = 0;    ///< smoothed, of the word heard, else the largest of the frame
  float volume_db = 0;           ///< RMS of `samples`, full scale 0 dB, at least -100
  float ring_free = 1;           ///< share of the ring that was free when the frame was taken; 0: feed drops sound
};

struct Fetched {
  bool ready = false;  ///< false: more input is needed, or `status` tells what failed
  Status status{};
};

enum class Stage : std::uint8_t { kEcho, kNoise, kVoice, kWake };

class FrontEnd {
 public:
  /// Allocates the block itself.
  static Result<FrontEnd> create(FrontEndPlan plan);
  /// Uses the caller's block: plan.memory().block_bytes, aligned to 64, alive as long as the front end. Fails with
  /// kArenaTooSmall or kMisaligned before anything else happens.
  static Result<FrontEnd> place(FrontEndPlan plan, std::span<std::byte> block);

  FrontEnd(FrontEnd&&) noexcept;
  FrontEnd& operator=(FrontEnd&&) noexcept;
  ~FrontEnd();

  /// Takes interleaved samples, any number of them, and returns how many the ring had room for: offer the others again.
  std::size_t feed(std::span<const std::int16_t> interleaved) noexcept;
  /// Feeds what fits and drops the rest in whole sample frames, counted: for callers that cannot wait.
  void feed_or_drop(std::span<const std::int16_t> interleaved) noexcept;
  Fetched fetch(Frame* frame) noexcept;

  /// As after creation; switches and thresholds stay.
  void reset() noexcept;

  /// Fails with kNotFound for a stage that the configuration does not have. `model` counts wake models.
  Status set_enabled(Stage stage, bool enabled, int model = 0) noexcept;
  bool enabled(Stage stage, int model = 0) const noexcept;
  /// word: counted from 1. Fails outside kMinWakeThreshold..kMaxWakeThreshold.
  Status set_wake_threshold(int word, float threshold) noexcept;

  /// Sample frames that feed_or_drop had no room for.
  std::uint64_t dropped() const noexcept;
  /// Energy before echo cancellation against energy behind it, in dB, over all frames whose reference was not silent.
  /// Somebody who speaks meanwhile is rightly left over; the best half second tells more then.
  double echo_return_loss_db() const noexcept;
  double best_echo_return_loss_db() const noexcept;

  const FrontEndPlan& plan() const noexcept;
  /// The models, for an application with sessions of its own; they may run between fetches on the fetching thread. Null
  /// when there are none.
  Fleet* fleet() noexcept;

 private:
  friend class FrontEndPlanner;
  struct Impl;
  class Switch;
  explicit FrontEnd(std::unique_ptr<Impl> impl);
  static std::size_t object_bytes() noexcept;
  Switch* switch_of(Stage stage, int model) const noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bantam::audio
