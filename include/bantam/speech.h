// Streaming speech recognition on three graphs (encoder, CTC, attention decoder; WeNet's interface), in fixed memory.
//
//   speech::StreamPlan plan;                                   // what a stream needs, before it exists
//   Status s = speech::Stream::plan(package, units, config, &plan);
//   speech::Stream stream;
//   s = stream.open(package, units, config, memory);           // plan.total_bytes, aligned to plan.alignment
//   stream.set_listener({&app, [](void* app, const speech::Recognition& r) { ... }});
//   s = stream.feed(samples);                                  // 16 kHz, 16 bit, any block size
//   s = stream.finish();                                       // the rest; the final result comes before it returns
//
// Everything of a stream (features, caches, activations, search, kept encoder frames, texts) lies in its memory,
// however long the sound: an utterance that reaches a limit is closed, reported as SegmentEnd::kLimit, and the next
// begins. Results never depend on how the sound is cut into blocks. The package and the units are shared by any number
// of streams; they and the memory must outlive them. Threads: different streams may run on different threads at once.
// `package` holds models of these names, each planned once: "encoder", "ctc" and, unless there is no rescoring,
// "decoder" (bantam/recognizer.h compiles such a package). Freestanding; nothing is allocated. Errors: Status values;
// after a failed call a stream must be reset.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "bantam/runtime.h"
#include "bantam/status.h"

namespace bantam::speech {

/// The list of output symbols, used where its text lies: one "symbol id" a line. Copyable view.
class Units {
 public:
  struct Unit {
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
  };

  /// One more than the largest id. Fails at a malformed line; Status::index is its number.
  static Status count(std::string_view text, std::int32_t* units) noexcept;
  /// Reads the list into `table`, which has count() entries. Both must outlive the view.
  static Status place(std::string_view text, std::span<Unit> table, Units* out) noexcept;

  std::size_t size() const noexcept { return table_.size(); }
  /// Empty for an id that has no symbol.
  std::string_view symbol(std::int32_t id) const noexcept;
  /// Bytes of the longest symbol.
  std::size_t longest() const noexcept { return longest_; }
  /// Symbols joined to a text: U+2581 becomes a space between words, `<unk>` disappears, ASCII is lower-cased. Returns
  /// its length; what does not fit `out` (tokens.size() * longest() bytes always do) is cut off.
  std::size_t join(std::span<const std::int32_t> tokens, std::span<char> out) const noexcept;

 private:
  std::string_view text_;
  std::span<const Unit> table_;
  std::size_t longest_ = 0;
};

/// An utterance is over when at least this much trailing silence was heard in an utterance of at least this length.
struct EndpointRule {
  bool needs_text = false;  ///< only if something was recognised
  std::int32_t trailing_silence_ms = 0;
  std::int32_t utterance_ms = 0;
};
using EndpointRules = std::array<EndpointRule, 3>;
inline constexpr EndpointRules kDefaultRules = {{{false, 5000, 0}, {true, 1000, 0}, {false, 0, 20000}}};

struct StreamConfig {
  std::int32_t beam = 10;         ///< 1..32 prefixes and tokens per frame
  float ctc_weight = 0.5F;        ///< of the prefix's score in the final score
  float rescoring_weight = 1.0F;  ///< of the decoder's score; 0: no rescoring
  float reverse_weight = 0.0F;    ///< 0..1: share of the right-to-left decoder
  float blank_scale = 1.0F;       ///< factor on the probability of the blank, > 0
  bool continuous = false;        ///< close utterances at endpoints and go on; else only at the end
  EndpointRules rules = kDefaultRules;
  /// Nanoseconds of a steady clock, for Stream::times(); null: not measured.
  std::int64_t (*clock)() = nullptr;
};

/// One of the n best.
struct Hypothesis {
  std::span<const std::int32_t> tokens;
  std::span<const std::int32_t> frames;  ///< encoder frame of each token, counted from the segment's first
  float ctc_score = 0.0F;                ///< log-probability of the prefix
  float attention_score = 0.0F;          ///< of the decoder, mixed with reverse_weight; 0 when not rescored
  float score = 0.0F;                    ///< what the order goes by
};

enum class SegmentEnd : std::uint8_t {
  kNone,      ///< a partial result: more may follow
  kInput,     ///< finish() was called
  kEndpoint,  ///< an endpoint rule holds (continuous)
  kLimit,     ///< the utterance reached the longest that memory or the model's position table allow
};

/// Valid during the listener's call.
struct Recognition {
  SegmentEnd end = SegmentEnd::kNone;
  bool rescored = false;
  std::string_view text;  ///< of the best hypothesis
  std::span<const Hypothesis> nbest;
  std::int64_t first_feature = 0;  ///< feature frames (10 ms) before this segment
  std::int64_t features = 0;       ///< of this segment so far
};

struct Listener {
  void* context = nullptr;
  void (*on_result)(void* context, const Recognition& result) = nullptr;
};

/// When a unit was spoken, in ms from the beginning of the sound.
struct UnitTime {
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
};
/// Of token `i` of a hypothesis. `frame_ms`: length of an encoder frame, Stream::frame_ms().
UnitTime unit_time(const Recognition& result, const Hypothesis& hypothesis, std::size_t i,
                   std::int32_t frame_ms) noexcept;

/// Bytes of a stream by purpose.
struct StreamPlan {
  std::size_t total_bytes = 0;
  std::size_t alignment = 0;
  Requirements fleet;               ///< arena of the three sessions: caches (state), activations, tables
  std::size_t feature_bytes = 0;    ///< feature extraction and the frames of a chunk
  std::size_t search_bytes = 0;     ///< prefixes and their times
  std::size_t utterance_bytes = 0;  ///< encoder frames kept for rescoring
  std::size_t result_bytes = 0;     ///< texts, hypotheses, the stream itself
  std::int32_t max_encoder_frames = 0;
  std::int32_t max_tokens = 0;
};

/// Where the time went, in ns. Zero without a clock.
struct StageTimes {
  std::int64_t features = 0;
  std::int64_t encoder = 0;  ///< CTC graph included
  std::int64_t search = 0;
  std::int64_t rescoring = 0;
  std::int64_t total() const noexcept { return features + encoder + search + rescoring; }
};

class Stream {
 public:
  /// Needs of a stream. Fails when the package lacks a model, port or metadata, or when they contradict each other.
  static Status plan(const Package& package, const Units& units, const StreamConfig& config, StreamPlan* out) noexcept;

  /// Lays out a stream in `memory` and resets it. The object is a handle: copies mean the same stream.
  Status open(const Package& package, const Units& units, const StreamConfig& config,
              std::span<std::byte> memory) noexcept;

  void set_listener(const Listener& listener) noexcept;
  /// Threads for the kernels; null: the calling thread alone. Must outlive the stream.
  Status set_threads(const Threads* threads) noexcept;

  /// Takes samples and tells the listener what they made known. Fails after finish().
  Status feed(std::span<const std::int16_t> samples) noexcept;
  /// The end of the sound: what is left is recognised, and the last segment closed.
  Status finish() noexcept;
  /// As after open(): for the next sound.
  void reset() noexcept;

  std::int32_t frame_ms() const noexcept;
  StageTimes times() const noexcept;

 private:
  struct Parts;
  Parts* parts_ = nullptr;
};

}  // namespace bantam::speech
