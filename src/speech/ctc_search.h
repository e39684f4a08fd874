// CTC prefix beam search over log-probabilities, frame by frame, in memory that the caller gives.
//
// A prefix is a sequence of tokens without blanks and repetitions; its probability sums over all alignments that end in
// a blank (s) and in its last token (ns). Each frame the best `beam` tokens extend the best `beam` prefixes, and the
// best `beam` results stay. Beside the sums, the best single alignment of each prefix is followed, because its frames
// are the times of the tokens. Arithmetic is float32, as in the systems that results are compared with. The state lives
// from reset to reset, so that a sound may come in pieces of any size.
//
// Memory: nothing is allocated; the memory must outlive the object. Threads: one at a time. A prefix never grows beyond
// max_tokens: extensions of a full one are dropped, and the caller is expected to reset before (see room()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bantam/status.h"
#include "dsp/block.h"

namespace bantam::speech {

/// Stands for log 0.
inline constexpr float kLogZero = -3.4028234663852886e38F;

/// log(exp(a) + exp(b)); arguments that are log 0 do not count.
float log_add(float a, float b) noexcept;

struct SearchConfig {
  int beam = 10;  ///< 1..kMaxBeam; both prunes
  int blank = 0;
  int max_tokens = 256;  ///< of one prefix, 1..kMaxTokens
};
inline constexpr int kMaxBeam = 32;
inline constexpr int kMaxTokens = 1 << 16;

class CtcSearch {
 public:
  /// Bytes that `place` needs; 0 when the configuration is out of range.
  static std::size_t bytes(const SearchConfig& config) noexcept;
  Status place(const SearchConfig& config, std::span<std::byte> memory) noexcept;

  /// One empty prefix, frame 0.
  void reset() noexcept;

  /// Takes the next frame: log-probabilities of all tokens. NaNs count as impossible.
  void step(std::span<const float> log_probabilities) noexcept;

  /// Prefixes, best first.
  std::size_t size() const noexcept { return kept_count_; }
  std::span<const std::int32_t> tokens(std::size_t i) const noexcept;
  /// The frame of each token, counted from reset.
  std::span<const std::int32_t> frames(std::size_t i) const noexcept;
  float score(std::size_t i) const noexcept;

  /// Frames taken since reset.
  std::int32_t frame_count() const noexcept { return frame_; }
  /// How many tokens the longest prefix may still gain.
  std::size_t room() const noexcept;

 private:
  /// Which list of frames a result continues, and how.
  struct Path {
    enum class Change : std::uint8_t { kKeep, kAppend, kMoveLast };
    std::int16_t prefix = -1;  ///< among the kept ones; -1: an empty list
    bool blank_list = false;   ///< the list of the alignment that ends in a blank
    Change change = Change::kKeep;
  };
  struct Scores {
    float blank = kLogZero;
    float token = kLogZero;
    float best_blank = kLogZero;  ///< of the best alignment alone
    float best_token = kLogZero;
    float total() const noexcept { return log_add(blank, token); }
    bool best_ends_in_blank() const noexcept { return best_blank > best_token; }
    float best() const noexcept { return best_ends_in_blank() ? best_blank : best_token; }
  };
  struct Prefix {
    Scores scores;
    std::int32_t length = 0;
  };
  struct Candidate {
    Scores scores;
    float token_probability = kLogZero;  ///< of the frame that gave the last token its time
    Path blank_path;
    Path token_path;
    std::int16_t base = 0;       ///< the kept prefix it continues
    std::int32_t appended = -1;  ///< or -1: the prefix itself
    bool used = false;
  };
  struct TopToken {
    std::int32_t id = 0;
    float log_probability = kLogZero;
  };
  /// Lists of one prefix, max_tokens each.
  struct Lists {
    std::int32_t* tokens;
    std::int32_t* blank_frames;
    std::int32_t* token_frames;
  };

  void lay_out(dsp::Block& block) noexcept;
  Lists lists(int generation, std::size_t prefix) const noexcept;
  void find_top(std::span<const float> log_probabilities) noexcept;
  void start_candidates() noexcept;
  Candidate* extension(std::size_t prefix, std::size_t top) noexcept;
  void pass(std::size_t prefix, std::size_t top) noexcept;
  static void extend(Candidate* to, float from, float best, const Path& path, float log_probability) noexcept;
  std::size_t prune() noexcept;
  void rewrite(std::size_t count) noexcept;
  void write_frames(const Path& path, std::int32_t* to, std::int32_t length) const noexcept;

  std::size_t beam() const noexcept { return static_cast<std::size_t>(config_.beam); }

  SearchConfig config_{};
  std::span<std::int32_t> lists_;     ///< two generations of prefixes
  std::span<Prefix> kept_;            ///< best first
  std::span<Candidate> candidates_;   ///< the kept prefixes themselves, then each extended by each top token
  std::span<std::int32_t> existing_;  ///< [prefix][top]: the kept prefix that this extension equals, or -1
  std::span<std::int32_t> order_;     ///< candidates chosen by prune
  std::span<TopToken> top_;
  std::size_t top_count_ = 0;
  std::size_t kept_count_ = 0;
  std::int32_t frame_ = 0;
  int generation_ = 0;
};

}  // namespace bantam::speech
