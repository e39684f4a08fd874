#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <string>
#include <utility>

#include "audio/plan.h"
#include "audio/stages.h"
#include "bantam/audio.h"

namespace bantam::audio {
namespace {

constexpr float kLowestDb = -100.0F;
/// Reference frames below -60 dB hold no echo to measure by.
constexpr double kSilence = 1e-6;

double power(std::span<const std::int16_t> samples) noexcept {
  double sum = 0;
  for (const std::int16_t s : samples) sum += static_cast<double>(s) * s;
  return sum / (32768.0 * 32768.0 * static_cast<double>(samples.size()));
}

double ratio_db(double a, double b) noexcept { return a > 0 && b > 0 ? 10 * std::log10(a / b) : 0; }

}  // namespace

/// A switch that any thread may turn; the fetching thread learns of a turn once.
class FrontEnd::Switch {
 public:
  void set(bool on) noexcept { on_.store(on, std::memory_order_relaxed); }
  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
  /// True when it is on; *turned_on: and was off at the last look.
  bool look(bool* turned_on) noexcept {
    const bool now = on();
    *turned_on = now && !seen_;
    seen_ = now;
    return now;
  }

 private:
  std::atomic<bool> on_{true};
  bool seen_ = true;
};

struct FrontEnd::Impl {
  explicit Impl(FrontEndPlan p) : plan(std::move(p)), config(plan.config()), shapes(plan.parts_->shapes) {}

  Status place(std::span<std::byte> block) noexcept;
  bool create_echo();
  void reset() noexcept;
  Fetched fetch(Frame* frame) noexcept;

  FrontEndPlan plan;
  const FrontEndConfig& config;
  const StageShapes& shapes;
  OwnedBlock owned;
  Fleet* fleet = nullptr;
  EchoCanceller echo;
  Stages stages;
  SpeechGate gate;
  Switch echo_on;
  Switch noise_on;
  Switch voice_on;
  std::array<Switch, kMaxWakeModels> wake_on;
  std::array<std::atomic<float>, kMaxWakeWords> thresholds{};
  int words = 0;
  std::uint64_t position = 0;
  float speech_probability = 0;
  // Written by fetch, read from any thread.
  std::atomic<double> energy_before{0};
  std::atomic<double> energy_after{0};
  std::atomic<double> best_loss{0};

 private:
  void cancel_echo() noexcept;
  void measure_echo() noexcept;
  Status suppress_noise() noexcept;
  Status listen(Frame* frame) noexcept;
  Status hear_features(FeatureStream& stream, Frame* frame) noexcept;
  Status hear_samples(Detector& detector, std::span<const std::int16_t> samples, Frame* frame, int wake) noexcept;
  Status decide(Detector& detector, Frame* frame, int wake) noexcept;
  void decide_voice(Frame* frame) noexcept;
  void decide_wake(std::size_t model, Frame* frame) noexcept;
  std::span<const std::int16_t> sound(Source source) const noexcept;
  std::span<std::int16_t> enhanced() const noexcept {
    return {stages.enhanced + stages.pre_roll, static_cast<std::size_t>(config.frame)};
  }
  bool hears(const DetectorShape& shape, Source source, const FeatureStream& stream) const noexcept {
    return shape.kind == DetectorKind::kMicroFeatures && source == stream.source && shape.step_ms == stream.step_ms;
  }

  std::array<bool, kMaxWakeModels> wake_active_{};
  bool voice_active_ = false;
  // Of the half second under way.
  double recent_before_ = 0;
  double recent_after_ = 0;
  int recent_samples_ = 0;
};

std::size_t FrontEnd::object_bytes() noexcept { return sizeof(Impl); }

Status FrontEnd::Impl::place(std::span<std::byte> memory) noexcept {
  const FrontEndMemory& need = plan.memory();
  if (memory.size() < need.block_bytes)
    return failure(StatusCode::kArenaTooSmall, "block of a front end", static_cast<std::int64_t>(memory.size()),
                   static_cast<std::int64_t>(need.block_bytes));
  const auto misalignment = reinterpret_cast<std::uintptr_t>(memory.data()) % kBlockAlignment;
  if (misalignment != 0)
    return failure(StatusCode::kMisaligned, "block of a front end", static_cast<std::int64_t>(misalignment), 0);
  dsp::Block block(memory.first(need.block_bytes));
  const auto arena_bytes = static_cast<std::size_t>(need.fleet.arena_bytes);
  std::byte* arena = block.take_bytes(arena_bytes);
  if (arena_bytes > 0) BANTAM_RETURN_IF_ERROR(Fleet::place(plan.parts_->package, {arena, arena_bytes}, &fleet));
  stages.lay_out(shapes, config, block, nullptr);
  BANTAM_RETURN_IF_ERROR(block.complete("block of a front end"));
  if (shapes.noise)
    stages.noise.attach(fleet->find(config.ns.model),
                        config.ns.second_model.empty() ? nullptr : fleet->find(config.ns.second_model));
  if (shapes.voice) {
    stages.voice.attach(fleet->find(config.vad.model));
    gate = SpeechGate(config.vad.min_speech_ms * (kSampleRate / 1000), config.vad.min_noise_ms * (kSampleRate / 1000));
  }
  for (std::size_t i = 0; i < shapes.wake.size(); ++i) {
    stages.wake[i].attach(fleet->find(config.wake[i].model));
    for (std::size_t w = 0; w < config.wake[i].words.size(); ++w)
      thresholds[static_cast<std::size_t>(words++)].store(config.wake[i].threshold);
  }
  reset();
  return ok_status();
}

bool FrontEnd::Impl::create_echo() {
  if (!shapes.echo) return true;
  echo = EchoCanceller::create(*shapes.echo);
  return echo.valid();
}

void FrontEnd::Impl::reset() noexcept {
  stages.input.reset();
  if (echo.valid()) echo.reset();
  if (shapes.noise) stages.noise.reset();
  if (shapes.voice) stages.voice.reset();
  for (std::size_t i = 0; i < shapes.wake.size(); ++i) stages.wake[i].reset();
  for (int w = 0; w < words; ++w) stages.triggers[static_cast<std::size_t>(w)].reset();
  for (int s = 0; s < stages.stream_count; ++s) stages.streams[static_cast<std::size_t>(s)].features.reset();
  gate.reset();
  std::fill_n(stages.enhanced, stages.pre_roll + static_cast<std::size_t>(config.frame), std::int16_t{0});
  position = 0;
  speech_probability = 0;
  energy_before.store(0);
  energy_after.store(0);
  best_loss.store(0);
  recent_before_ = recent_after_ = 0;
  recent_samples_ = 0;
  if (shapes.echo) std::fill_n(stages.reference, stages.echo_delay, std::int16_t{0});
}

std::span<const std::int16_t> FrontEnd::Impl::sound(Source source) const noexcept {
  if (source == Source::kEnhanced) return enhanced();
  return {stages.raw, static_cast<std::size_t>(config.frame)};
}

void FrontEnd::Impl::cancel_echo() noexcept {
  if (!echo.valid()) return;
  bool turned_on = false;
  if (echo_on.look(&turned_on)) {
    if (turned_on) echo.reset();
    for (int t = 0; t < config.frame; t += echo.frame())
      echo.process(stages.microphone + t, stages.reference + t, stages.raw + t);
    measure_echo();
  } else {
    std::copy_n(stages.microphone, config.frame, stages.raw);
  }
  // The reference moves on by a frame.
  std::copy(stages.reference + config.frame, stages.reference + stages.echo_delay + config.frame, stages.reference);
}

void FrontEnd::Impl::measure_echo() noexcept {
  const auto frame = static_cast<std::size_t>(config.frame);
  if (power({stages.reference, frame}) < kSilence) return;
  const double before = power({stages.microphone, frame});
  const double after = power({stages.raw, frame});
  energy_before.store(energy_before.load() + before);
  energy_after.store(energy_after.load() + after);
  recent_before_ += before;
  recent_after_ += after;
  recent_samples_ += config.frame;
  if (recent_samples_ < kSampleRate / 2) return;
  best_loss.store(std::max(best_loss.load(), ratio_db(recent_before_, recent_after_)));
  recent_before_ = recent_after_ = 0;
  recent_samples_ = 0;
}

Status FrontEnd::Impl::suppress_noise() noexcept {
  // The pre-roll moves on by a frame.
  std::copy(stages.enhanced + config.frame, stages.enhanced + stages.pre_roll + config.frame, stages.enhanced);
  if (shapes.noise) return stages.noise.process(stages.raw, noise_on.on(), enhanced().data());
  std::copy_n(stages.raw, config.frame, enhanced().data());
  return ok_status();
}

void FrontEnd::Impl::decide_voice(Frame* frame) noexcept {
  speech_probability = stages.voice.probability(config.vad.class_index);
  const bool before = gate.speech();
  const bool after = gate.update(speech_probability >= config.vad.threshold, stages.voice.shape().hop_samples);
  frame->speech_started = frame->speech_started || (after && !before);
  frame->speech_ended = frame->speech_ended || (before && !after);
}

void FrontEnd::Impl::decide_wake(std::size_t model, Frame* frame) noexcept {
  int first = 0;
  for (std::size_t i = 0; i < model; ++i) first += static_cast<int>(config.wake[i].words.size());
  const std::vector<int>& classes = config.wake[model].classes;
  const Detector& detector = stages.wake[model];
  int heard = 0;
  float highest = 0;
  for (std::size_t w = 0; w < classes.size(); ++w) {
    const auto word = static_cast<std::size_t>(first) + w;
    WordTrigger& trigger = stages.triggers[word];
    const float threshold = thresholds[word].load(std::memory_order_relaxed);
    const bool fired = trigger.update(detector.probability(classes[w]), detector.shape().hop_samples, threshold);
    if (frame->wake_word == 0) frame->wake_probability = std::max(frame->wake_probability, trigger.smoothed());
    if (!fired || trigger.smoothed() <= highest) continue;
    highest = trigger.smoothed();
    heard = static_cast<int>(word) + 1;
  }
  if (heard == 0) return;
  for (std::size_t w = 0; w < classes.size(); ++w) stages.triggers[static_cast<std::size_t>(first) + w].rest();
  frame->wake_word = heard;
  frame->wake_probability = highest;
}

/// wake: index of the wake model, or -1 for voice activity.
Status FrontEnd::Impl::decide(Detector& detector, Frame* frame, int wake) noexcept {
  BANTAM_RETURN_IF_ERROR(detector.invoke());
  if (wake < 0) {
    decide_voice(frame);
  } else {
    decide_wake(static_cast<std::size_t>(wake), frame);
  }
  return ok_status();
}

Status FrontEnd::Impl::hear_samples(Detector& detector, std::span<const std::int16_t> samples, Frame* frame,
                                    int wake) noexcept {
  while (!samples.empty()) {
    bool due = false;
    samples = samples.subspan(detector.add(samples, &due));
    if (due) BANTAM_RETURN_IF_ERROR(decide(detector, frame, wake));
  }
  return ok_status();
}

Status FrontEnd::Impl::hear_features(FeatureStream& stream, Frame* frame) noexcept {
  std::span<const std::int16_t> samples = sound(stream.source);
  while (!samples.empty()) {
    const std::int8_t* row = nullptr;
    samples = samples.subspan(stream.features.push(samples, &row));
    if (row == nullptr) continue;
    if (voice_active_ && hears(*shapes.voice, config.vad.source, stream) && stages.voice.add_row(row))
      BANTAM_RETURN_IF_ERROR(decide(stages.voice, frame, -1));
    for (std::size_t i = 0; i < shapes.wake.size(); ++i)
      if (wake_active_[i] && hears(shapes.wake[i], config.wake[i].source, stream) && stages.wake[i].add_row(row))
        BANTAM_RETURN_IF_ERROR(decide(stages.wake[i], frame, static_cast<int>(i)));
  }
  return ok_status();
}

Status FrontEnd::Impl::listen(Frame* frame) noexcept {
  bool turned_on = false;
  voice_active_ = shapes.voice && voice_on.look(&turned_on);
  if (voice_active_ && turned_on) stages.voice.reset();
  if (!voice_active_ && gate.speech()) {
    frame->speech_ended = true;
    gate.reset();
    speech_probability = 0;
  }
  for (std::size_t i = 0; i < shapes.wake.size(); ++i) {
    wake_active_[i] = wake_on[i].look(&turned_on);
    if (wake_active_[i] && turned_on) stages.wake[i].reset();
  }
  for (int s = 0; s < stages.stream_count; ++s)
    BANTAM_RETURN_IF_ERROR(hear_features(stages.streams[static_cast<std::size_t>(s)], frame));
  if (voice_active_ && shapes.voice->kind == DetectorKind::kWave)
    BANTAM_RETURN_IF_ERROR(hear_samples(stages.voice, sound(config.vad.source), frame, -1));
  for (std::size_t i = 0; i < shapes.wake.size(); ++i)
    if (wake_active_[i] && shapes.wake[i].kind == DetectorKind::kWave)
      BANTAM_RETURN_IF_ERROR(hear_samples(stages.wake[i], sound(config.wake[i].source), frame, static_cast<int>(i)));
  return ok_status();
}

Fetched FrontEnd::Impl::fetch(Frame* frame) noexcept {
  *frame = {};
  frame->ring_free = stages.input.free_share();
  if (!stages.input.read(stages.microphone, shapes.echo ? stages.reference + stages.echo_delay : nullptr)) return {};
  cancel_echo();
  if (const Status s = suppress_noise(); !s.ok()) return {false, s};
  if (const Status s = listen(frame); !s.ok()) return {false, s};
  frame->samples = enhanced();
  frame->position = position;
  if (frame->speech_started) {
    const auto there = static_cast<std::size_t>(std::min<std::uint64_t>(position, stages.pre_roll));
    frame->pre_roll = {stages.enhanced + stages.pre_roll - there, there};
  }
  frame->speech = gate.speech();
  frame->speech_probability = speech_probability;
  frame->volume_db = std::max(kLowestDb, static_cast<float>(10 * std::log10(power(frame->samples) + 1e-20)));
  position += static_cast<std::uint64_t>(config.frame);
  return {true, ok_status()};
}

FrontEnd::FrontEnd(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FrontEnd::FrontEnd(FrontEnd&&) noexcept = default;
FrontEnd& FrontEnd::operator=(FrontEnd&&) noexcept = default;
FrontEnd::~FrontEnd() = default;

Result<FrontEnd> FrontEnd::create(FrontEndPlan plan) {
  const std::size_t bytes = plan.memory().block_bytes;
  OwnedBlock block = allocate_block(bytes);
  if (block == nullptr)
    return fail(StatusCode::kArenaTooSmall, "the host has no " + std::to_string(bytes) + " bytes for the front end",
                "free memory or use smaller models");
  auto front_end = place(std::move(plan), {block.get(), bytes});
  if (front_end) front_end->impl_->owned = std::move(block);
  return front_end;
}

Result<FrontEnd> FrontEnd::place(FrontEndPlan plan, std::span<std::byte> block) {
  auto impl = std::make_unique<Impl>(std::move(plan));
  if (const Status s = impl->place(block); !s.ok())
    return fail(error_from(s, "give FrontEndPlan::memory().block_bytes, aligned to 64"));
  if (!impl->create_echo())
    return fail(StatusCode::kArenaTooSmall, "SpeexDSP found no memory for the echo canceller", "free memory");
  return FrontEnd(std::move(impl));
}

std::size_t FrontEnd::feed(std::span<const std::int16_t> interleaved) noexcept {
  return impl_->stages.input.write(interleaved);
}

void FrontEnd::feed_or_drop(std::span<const std::int16_t> interleaved) noexcept {
  impl_->stages.input.write_or_drop(interleaved);
}

Fetched FrontEnd::fetch(Frame* frame) noexcept { return impl_->fetch(frame); }

void FrontEnd::reset() noexcept { impl_->reset(); }

/// The switch of a stage that the configuration has, or null.
FrontEnd::Switch* FrontEnd::switch_of(Stage stage, int model) const noexcept {
  Impl& impl = *impl_;
  switch (stage) {
    case Stage::kEcho: return impl.shapes.echo ? &impl.echo_on : nullptr;
    case Stage::kNoise: return impl.shapes.noise ? &impl.noise_on : nullptr;
    case Stage::kVoice: return impl.shapes.voice ? &impl.voice_on : nullptr;
    case Stage::kWake: break;
  }
  const bool there = model >= 0 && static_cast<std::size_t>(model) < impl.shapes.wake.size();
  return there ? &impl.wake_on[static_cast<std::size_t>(model)] : nullptr;
}

Status FrontEnd::set_enabled(Stage stage, bool enabled, int model) noexcept {
  Switch* const found = switch_of(stage, model);
  if (found == nullptr) return failure(StatusCode::kNotFound, "the configuration does not have this stage", model);
  found->set(enabled);
  return ok_status();
}

bool FrontEnd::enabled(Stage stage, int model) const noexcept {
  const Switch* const found = switch_of(stage, model);
  return found != nullptr && found->on();
}

Status FrontEnd::set_wake_threshold(int word, float threshold) noexcept {
  if (word < 1 || word > impl_->words)
    return failure(StatusCode::kNotFound, "there is no wake word of this number", word, impl_->words);
  if (!(threshold >= kMinWakeThreshold && threshold <= kMaxWakeThreshold))
    return failure(StatusCode::kInvalidArgument, "a wake threshold is in 0.4..0.9999");
  impl_->thresholds[static_cast<std::size_t>(word - 1)].store(threshold, std::memory_order_relaxed);
  return ok_status();
}

std::uint64_t FrontEnd::dropped() const noexcept { return impl_->stages.input.dropped(); }

double FrontEnd::echo_return_loss_db() const noexcept {
  return ratio_db(impl_->energy_before.load(), impl_->energy_after.load());
}

double FrontEnd::best_echo_return_loss_db() const noexcept { return impl_->best_loss.load(); }

const FrontEndPlan& FrontEnd::plan() const noexcept { return impl_->plan; }
Fleet* FrontEnd::fleet() noexcept { return impl_->fleet; }

}  // namespace bantam::audio
