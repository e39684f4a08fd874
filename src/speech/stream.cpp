#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "bantam/speech.h"
#include "dsp/block.h"
#include "dsp/kaldi_fbank.h"
#include "speech/axis.h"
#include "speech/ctc_search.h"
#include "speech/endpoint.h"
#include "speech/rescorer.h"
#include "speech/traits.h"

namespace bantam::speech {
namespace {

constexpr std::int32_t kBlank = 0;
constexpr std::int32_t kFeatureMs = 10;
constexpr float kSilence = 0.8F;            // probability of the blank above which a frame is silent
constexpr std::int32_t kTokensAlone = 512;  // longest prefix where no decoder sets a bound
constexpr std::size_t kArenaAlignment = 64;
constexpr std::size_t kLongestUnit = 1024;  // bytes

/// Adds the time from construction to destruction to a sum.
class Stopwatch {
 public:
  Stopwatch(std::int64_t (*clock)(), std::int64_t& sum) noexcept
      : clock_(clock), sum_(sum), start_(clock != nullptr ? clock() : 0) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    if (clock_ != nullptr) sum_ += clock_() - start_;
  }

 private:
  std::int64_t (*clock_)();
  std::int64_t& sum_;
  std::int64_t start_;
};

Status check_config(const StreamConfig& c, const Traits& t, const Units& units) noexcept {
  if (c.beam < 1 || c.beam > kMaxBeam)
    return failure(StatusCode::kInvalidArgument, "the beam must be within 1 and 32", c.beam, kMaxBeam);
  if (!std::isfinite(c.ctc_weight) || !std::isfinite(c.rescoring_weight) || c.rescoring_weight < 0.0F)
    return failure(StatusCode::kInvalidArgument, "ctc_weight and rescoring_weight must be finite, the latter >= 0");
  if (!(c.reverse_weight >= 0.0F && c.reverse_weight <= 1.0F))
    return failure(StatusCode::kInvalidArgument, "reverse_weight must be within 0 and 1");
  if (!(c.blank_scale > 0.0F) || !std::isfinite(c.blank_scale))
    return failure(StatusCode::kInvalidArgument, "blank_scale must be positive");
  if (c.rescoring_weight > 0.0F && t.decoder == kNoModel)
    return failure(StatusCode::kNotFound, "rescoring needs a session called 'decoder'");
  if (c.rescoring_weight > 0.0F && c.reverse_weight > 0.0F && !t.reverse)
    return failure(StatusCode::kUnsupported, "reverse_weight needs a decoder that scores from right to left too");
  if (units.size() != static_cast<std::size_t>(t.vocabulary))
    return failure(StatusCode::kInvalidArgument, "the list of units does not fit the model's vocabulary",
                   static_cast<std::int64_t>(units.size()), t.vocabulary);
  return ok_status();
}

}  // namespace

UnitTime unit_time(const Recognition& result, const Hypothesis& hypothesis, std::size_t i,
                   std::int32_t frame_ms) noexcept {
  constexpr std::int32_t kReach = 100;  // ms that a unit is taken to last before its peak
  const auto& frames = hypothesis.frames;
  const auto boundary = [&](std::size_t later) {
    return std::int64_t{(frames[later - 1] + frames[later]) / 2} * frame_ms;
  };
  const auto near = [&](std::size_t later) {
    return std::int64_t{frames[later] - frames[later - 1]} * frame_ms < kReach;
  };
  const std::int64_t peak = std::int64_t{frames[i]} * frame_ms;
  const std::int64_t begin = result.first_feature * kFeatureMs;
  UnitTime time{std::max<std::int64_t>(peak - kReach, 0), peak};
  if (i > 0 && near(i)) time.start_ms = boundary(i);
  if (i + 1 < frames.size() && near(i + 1)) time.end_ms = boundary(i + 1);
  return {begin + time.start_ms, begin + time.end_ms};
}

/// Everything of a stream but its sessions. Lies in the stream's memory itself.
struct Stream::Parts {
  // What it is.
  Traits traits;
  StreamConfig config;
  Units units;
  StreamPlan plan;
  Listener listener;

  // Where it lies.
  Session* encoder = nullptr;
  Session* ctc = nullptr;
  Axis encoder_frames;
  Axis ctc_frames;
  int features_port = -1;
  int offset_port = -1;
  int mask_port = -1;
  dsp::KaldiFbank fbank;
  CtcSearch search;
  Rescorer rescorer;
  std::byte* self = nullptr;
  std::span<std::byte> arena;
  std::span<std::byte> fbank_memory;
  std::span<std::byte> search_memory;
  std::span<float> window;   ///< feature frames of the next encoder call
  std::span<float> encoded;  ///< encoder frames of the utterance, for rescoring
  std::span<char> text;
  std::span<Hypothesis> nbest;

  // Where it stands.
  Endpoint endpoint;
  std::int32_t held = 0;           ///< feature frames in `window`
  std::int32_t frames = 0;         ///< encoder frames of the utterance
  std::int64_t offset = 0;         ///< position of the next encoder frame
  std::int64_t features_seen = 0;  ///< feature frames since the beginning of the sound
  std::int64_t segment_start = 0;  ///< features_seen at the beginning of the segment
  std::size_t text_length = 0;
  bool finished = false;
  StageTimes times;

  bool rescores() const noexcept { return config.rescoring_weight > 0.0F; }

  Status size(const Package& package) noexcept;
  void lay_out(dsp::Block& block) noexcept;
  Status place(const Package& package) noexcept;
  void reset() noexcept;
  void reset_utterance() noexcept;

  std::size_t take(std::span<const std::int16_t> samples) noexcept;
  Status run_window(bool last) noexcept;
  Status encode() noexcept;
  Status restart_positions() noexcept;
  void search_frames(std::int32_t count) noexcept;
  bool full() const noexcept;
  void describe_prefixes() noexcept;
  Status close(SegmentEnd end) noexcept;
  void emit(SegmentEnd end, bool rescored) noexcept;
};

/// Sizes by purpose. Everything a stream keeps is bounded by what its graphs were planned for.
Status Stream::Parts::size(const Package& package) noexcept {
  BANTAM_RETURN_IF_ERROR(read_traits(package, &traits));
  BANTAM_RETURN_IF_ERROR(check_config(config, traits, units));
  if (dsp::KaldiFbank::bytes({.bins = traits.feature_bins}) == 0)
    return failure(StatusCode::kUnsupported, "no features of so many bins can be computed", traits.feature_bins, 80);
  plan.alignment = kArenaAlignment;
  plan.fleet = package.requirements();
  plan.max_encoder_frames = rescores() ? traits.decoder_frames : std::numeric_limits<std::int32_t>::max() / 2;
  plan.max_tokens = rescores() ? std::min<std::int32_t>(traits.decoder_length - 1, kMaxTokens) : kTokensAlone;
  if (plan.max_encoder_frames < traits.frames || plan.max_tokens < 1)
    return failure(StatusCode::kInvalidModel, "the decoder was planned for fewer encoder frames than one call gives",
                   plan.max_encoder_frames, traits.frames);
  if (traits.chunk > 0 && plan.max_tokens < traits.chunk)
    return failure(StatusCode::kInvalidModel, "the decoder was planned for fewer tokens than one chunk may give",
                   plan.max_tokens, traits.chunk);
  if (units.longest() > kLongestUnit)
    return failure(StatusCode::kUnsupported, "a unit has too many bytes", static_cast<std::int64_t>(units.longest()),
                   static_cast<std::int64_t>(kLongestUnit));
  dsp::Block counting;
  lay_out(counting);
  plan.total_bytes = counting.used();
  return ok_status();
}

void Stream::Parts::lay_out(dsp::Block& block) noexcept {
  // The arena comes first: it has the memory's alignment.
  arena = block.take_span<std::byte>(static_cast<std::size_t>(plan.fleet.arena_bytes));
  std::size_t counted = block.used();
  const auto bytes_since = [&] {
    const std::size_t bytes = block.used() - counted;
    counted = block.used();
    return bytes;
  };
  self = block.take_bytes(sizeof(Parts));
  text = block.take_span<char>(static_cast<std::size_t>(plan.max_tokens) * units.longest());
  nbest = block.take_span<Hypothesis>(static_cast<std::size_t>(config.beam));
  plan.result_bytes = bytes_since();
  fbank_memory = block.take_span<std::byte>(dsp::KaldiFbank::bytes({.bins = traits.feature_bins}));
  window =
      block.take_span<float>(static_cast<std::size_t>(traits.window) * static_cast<std::size_t>(traits.feature_bins));
  plan.feature_bytes = bytes_since();
  search_memory = block.take_span<std::byte>(CtcSearch::bytes({config.beam, kBlank, plan.max_tokens}));
  plan.search_bytes = bytes_since();
  const std::int32_t kept = rescores() ? plan.max_encoder_frames : traits.frames;
  encoded = block.take_span<float>(static_cast<std::size_t>(kept) * static_cast<std::size_t>(traits.width));
  plan.utterance_bytes = bytes_since();
}

Status Stream::Parts::place(const Package& package) noexcept {
  Fleet* fleet = nullptr;
  BANTAM_RETURN_IF_ERROR(Fleet::place(package, arena, &fleet));
  encoder = fleet->session(static_cast<std::size_t>(traits.encoder));
  ctc = fleet->session(static_cast<std::size_t>(traits.ctc));
  features_port = encoder->find_input("chunk");
  offset_port = encoder->find_input("offset");
  mask_port = encoder->find_input("att_mask");
  encoder_frames.bind(*encoder, static_cast<std::size_t>(features_port), 1, traits.masked);
  ctc_frames.bind(*ctc, 0, 1, true);  // frames are scored one by one
  if (rescores()) {
    Session* const decoder = fleet->session(static_cast<std::size_t>(traits.decoder));
    BANTAM_RETURN_IF_ERROR(rescorer.place(*decoder, traits, config));
  }
  BANTAM_RETURN_IF_ERROR(fbank.place({.bins = traits.feature_bins}, fbank_memory));
  BANTAM_RETURN_IF_ERROR(search.place({config.beam, kBlank, plan.max_tokens}, search_memory));
  endpoint = Endpoint(config.rules, traits.subsampling * kFeatureMs, kSilence * config.blank_scale);
  reset();
  return ok_status();
}

void Stream::Parts::reset() noexcept {
  fbank.reset();
  held = 0;
  features_seen = segment_start = 0;
  finished = false;
  times = {};
  reset_utterance();
}

void Stream::Parts::reset_utterance() noexcept {
  encoder->reset();
  search.reset();
  endpoint.reset();
  frames = 0;
  offset = traits.first_offset();
  text_length = 0;
}

/// Takes samples up to the end of the next feature frame.
std::size_t Stream::Parts::take(std::span<const std::int16_t> samples) noexcept {
  const Stopwatch watch(config.clock, times.features);
  const auto bins = static_cast<std::size_t>(traits.feature_bins);
  bool complete = false;
  const std::size_t taken = fbank.feed(samples, window.subspan(static_cast<std::size_t>(held) * bins, bins), &complete);
  if (complete) {
    ++held;
    ++features_seen;
  }
  return taken;
}

/// One step of decoding: what is in the window is encoded and searched, and the listener told. `last`: the sound is
/// over, and the window may be short or even empty.
Status Stream::Parts::run_window(bool last) noexcept {
  if (held >= traits.least()) {
    Status encoded_now = encode();
    if (encoded_now.code == StatusCode::kOutOfRange && offset > traits.first_offset()) {
      BANTAM_RETURN_IF_ERROR(restart_positions());
      encoded_now = encode();
    }
    BANTAM_RETURN_IF_ERROR(encoded_now);
    const std::int32_t count = traits.encoded(held);
    search_frames(count);
    frames += count;
    offset += count;
    const auto bins = static_cast<std::size_t>(traits.feature_bins);
    const auto kept = static_cast<std::size_t>(std::min(traits.overlap(), held));
    const auto used = static_cast<std::size_t>(held);
    std::ranges::copy(window.subspan((used - kept) * bins, kept * bins), window.begin());
    held = static_cast<std::int32_t>(kept);
  }
  describe_prefixes();
  emit(SegmentEnd::kNone, false);
  if (last) return close(SegmentEnd::kInput);
  if (config.continuous && endpoint.reached(text_length > 0)) {
    held = 0;  // an utterance begins with a whole window of its own
    return close(SegmentEnd::kEndpoint);
  }
  return full() ? close(SegmentEnd::kLimit) : ok_status();
}

/// Runs encoder and CTC graph on the frames held; leaves encoder frames behind those of the utterance.
Status Stream::Parts::encode() noexcept {
  const Stopwatch watch(config.clock, times.encoder);
  const std::int32_t count = traits.encoded(held);
  const auto features = static_cast<std::size_t>(features_port);
  BANTAM_RETURN_IF_ERROR(encoder_frames.resize(held));
  const auto used = static_cast<std::size_t>(held) * static_cast<std::size_t>(traits.feature_bins);
  const Tensor input = encoder->input(features);
  std::copy_n(window.begin(), used, input.as<float>());
  std::fill(input.as<float>() + used, input.as<float>() + input.desc->elements(), 0.0F);
  if (offset_port >= 0) *encoder->input(static_cast<std::size_t>(offset_port)).as<std::int64_t>() = offset;
  if (mask_port >= 0) {
    // Keys of the cache that no frame has filled yet, and of a window that is not full, do not count.
    const Tensor mask = encoder->input(static_cast<std::size_t>(mask_port));
    const std::int64_t cache = traits.first_offset();
    const std::int64_t unfilled = std::max<std::int64_t>(0, 2 * cache - offset);
    for (std::int64_t i = 0; i < mask.desc->elements(); ++i)
      mask.as<std::uint8_t>()[i] = i >= unfilled && i < cache + count ? 1 : 0;
  }
  BANTAM_RETURN_IF_ERROR(encoder->invoke());
  const auto elements = static_cast<std::size_t>(count) * static_cast<std::size_t>(traits.width);
  const auto place = rescores() ? static_cast<std::size_t>(frames) * static_cast<std::size_t>(traits.width) : 0;
  std::copy_n(encoder->output(0).as<float>(), elements, encoded.begin() + static_cast<std::ptrdiff_t>(place));
  BANTAM_RETURN_IF_ERROR(ctc_frames.resize(count));
  const Tensor hidden = ctc->input(0);
  std::copy_n(encoded.begin() + static_cast<std::ptrdiff_t>(place), elements, hidden.as<float>());
  std::fill(hidden.as<float>() + elements, hidden.as<float>() + hidden.desc->elements(), 0.0F);
  return ctc->invoke();
}

/// The model's table of positions is used up: the utterance is closed, and what is in the window begins the next.
Status Stream::Parts::restart_positions() noexcept {
  const std::int64_t seen = features_seen;
  features_seen -= held;
  describe_prefixes();
  BANTAM_RETURN_IF_ERROR(close(SegmentEnd::kLimit));
  features_seen = seen;
  return ok_status();
}

void Stream::Parts::search_frames(std::int32_t count) noexcept {
  const Stopwatch watch(config.clock, times.search);
  const Tensor output = ctc->output(0);
  const auto vocabulary = static_cast<std::size_t>(traits.vocabulary);
  const bool scaled = config.blank_scale != 1.0F;
  for (std::int32_t f = 0; f < count; ++f) {
    const std::span<float> row(output.as<float>() + static_cast<std::size_t>(f) * vocabulary, vocabulary);
    if (scaled) row[kBlank] += std::log(config.blank_scale);
    search.step(row);
    endpoint.step(std::exp(row[kBlank]));
  }
}

/// Whether the next window might not fit what was planned.
bool Stream::Parts::full() const noexcept {
  return frames > plan.max_encoder_frames - traits.frames || search.room() < static_cast<std::size_t>(traits.chunk) ||
         traits.chunk == 0;
}

void Stream::Parts::describe_prefixes() noexcept {
  for (std::size_t i = 0; i < search.size(); ++i)
    nbest[i] = {search.tokens(i), search.frames(i), search.score(i), 0.0F, search.score(i)};
  text_length = units.join(nbest[0].tokens, text);
}

/// Rescores, tells the final result, and begins the next utterance. Requires described prefixes.
Status Stream::Parts::close(SegmentEnd end) noexcept {
  const bool rescored = rescores() && frames > 0;
  const bool says_something = text_length > 0;
  if (rescored && (end == SegmentEnd::kInput || says_something)) {
    const Stopwatch watch(config.clock, times.rescoring);
    const auto elements = static_cast<std::size_t>(frames) * static_cast<std::size_t>(traits.width);
    BANTAM_RETURN_IF_ERROR(rescorer.run(encoded.first(elements), frames, nbest.first(search.size())));
    text_length = units.join(nbest[0].tokens, text);
  }
  // A prefix that could not grow is not the whole result, however the utterance ended.
  if (end == SegmentEnd::kInput || says_something) emit(search.room() == 0 ? SegmentEnd::kLimit : end, rescored);
  segment_start = features_seen;
  reset_utterance();
  return ok_status();
}

void Stream::Parts::emit(SegmentEnd end, bool rescored) noexcept {
  if (listener.on_result == nullptr) return;
  Recognition result;
  result.end = end;
  result.rescored = rescored;
  result.text = {text.data(), text_length};
  result.nbest = nbest.first(search.size());
  result.first_feature = segment_start;
  result.features = features_seen - segment_start;
  listener.on_result(listener.context, result);
}

Status Stream::plan(const Package& package, const Units& units, const StreamConfig& config, StreamPlan* out) noexcept {
  Parts parts;
  parts.config = config;
  parts.units = units;
  BANTAM_RETURN_IF_ERROR(parts.size(package));
  *out = parts.plan;
  return ok_status();
}

Status Stream::open(const Package& package, const Units& units, const StreamConfig& config,
                    std::span<std::byte> memory) noexcept {
  Parts parts;
  parts.config = config;
  parts.units = units;
  BANTAM_RETURN_IF_ERROR(parts.size(package));
  const auto misalignment = reinterpret_cast<std::uintptr_t>(memory.data()) % kArenaAlignment;
  if (misalignment != 0)
    return failure(StatusCode::kMisaligned, "memory of a stream", static_cast<std::int64_t>(misalignment), 0);
  dsp::Block block(memory);
  parts.lay_out(block);
  BANTAM_RETURN_IF_ERROR(block.complete("memory of a stream"));
  auto* const placed = new (parts.self) Parts(parts);
  BANTAM_RETURN_IF_ERROR(placed->place(package));
  parts_ = placed;
  return ok_status();
}

void Stream::set_listener(const Listener& listener) noexcept { parts_->listener = listener; }

Status Stream::set_threads(const Threads* threads) noexcept {
  BANTAM_RETURN_IF_ERROR(parts_->encoder->set_threads(threads));
  BANTAM_RETURN_IF_ERROR(parts_->ctc->set_threads(threads));
  return parts_->rescores() ? parts_->rescorer.set_threads(threads) : ok_status();
}

Status Stream::feed(std::span<const std::int16_t> samples) noexcept {
  if (parts_->finished) return failure(StatusCode::kInvalidArgument, "the sound was finished: reset the stream first");
  while (!samples.empty()) {
    samples = samples.subspan(parts_->take(samples));
    if (parts_->held == parts_->traits.window) BANTAM_RETURN_IF_ERROR(parts_->run_window(false));
  }
  return ok_status();
}

Status Stream::finish() noexcept {
  if (parts_->finished) return ok_status();
  parts_->finished = true;
  return parts_->run_window(true);
}

void Stream::reset() noexcept { parts_->reset(); }

std::int32_t Stream::frame_ms() const noexcept { return parts_->traits.subsampling * kFeatureMs; }

StageTimes Stream::times() const noexcept { return parts_->times; }

}  // namespace bantam::speech
