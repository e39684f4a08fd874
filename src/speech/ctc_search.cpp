#include "speech/ctc_search.h"

#include <algorithm>
#include <cmath>

namespace bantam::speech {
namespace {

bool supported(const SearchConfig& c) noexcept {
  return c.beam >= 1 && c.beam <= kMaxBeam && c.blank >= 0 && c.max_tokens >= 1 && c.max_tokens <= kMaxTokens;
}

}  // namespace

float log_add(float a, float b) noexcept {
  if (a <= kLogZero) return b;
  if (b <= kLogZero) return a;
  const float largest = std::max(a, b);
  return largest + std::log(std::exp(a - largest) + std::exp(b - largest));
}

void CtcSearch::lay_out(dsp::Block& block) noexcept {
  const std::size_t n = beam();
  lists_ = block.take_span<std::int32_t>(2 * n * 3 * static_cast<std::size_t>(config_.max_tokens));
  kept_ = block.take_span<Prefix>(n);
  candidates_ = block.take_span<Candidate>(n + n * n);
  existing_ = block.take_span<std::int32_t>(n * n);
  order_ = block.take_span<std::int32_t>(n);
  top_ = block.take_span<TopToken>(n);
}

std::size_t CtcSearch::bytes(const SearchConfig& config) noexcept {
  if (!supported(config)) return 0;
  CtcSearch search;
  search.config_ = config;
  dsp::Block block;
  search.lay_out(block);
  return block.used();
}

Status CtcSearch::place(const SearchConfig& config, std::span<std::byte> memory) noexcept {
  if (!supported(config))
    return failure(StatusCode::kUnsupported, "beam of a prefix search (found) must be 1 to 32 (expected)", config.beam,
                   kMaxBeam);
  config_ = config;
  dsp::Block block(memory);
  lay_out(block);
  BANTAM_RETURN_IF_ERROR(block.complete("memory of a prefix search"));
  reset();
  return ok_status();
}

void CtcSearch::reset() noexcept {
  kept_count_ = 1;
  kept_[0] = {{0.0F, kLogZero, 0.0F, 0.0F}, 0};
  frame_ = 0;
  generation_ = 0;
}

CtcSearch::Lists CtcSearch::lists(int generation, std::size_t prefix) const noexcept {
  const auto length = static_cast<std::size_t>(config_.max_tokens);
  std::int32_t* first = lists_.data() + (static_cast<std::size_t>(generation) * beam() + prefix) * 3 * length;
  return {first, first + length, first + 2 * length};
}

std::span<const std::int32_t> CtcSearch::tokens(std::size_t i) const noexcept {
  return {lists(generation_, i).tokens, static_cast<std::size_t>(kept_[i].length)};
}

std::span<const std::int32_t> CtcSearch::frames(std::size_t i) const noexcept {
  const Lists all = lists(generation_, i);
  return {kept_[i].scores.best_ends_in_blank() ? all.blank_frames : all.token_frames,
          static_cast<std::size_t>(kept_[i].length)};
}

float CtcSearch::score(std::size_t i) const noexcept { return kept_[i].scores.total(); }

std::size_t CtcSearch::room() const noexcept {
  std::int32_t longest = 0;
  for (std::size_t i = 0; i < kept_count_; ++i) longest = std::max(longest, kept_[i].length);
  return static_cast<std::size_t>(config_.max_tokens - longest);
}

void CtcSearch::step(std::span<const float> log_probabilities) noexcept {
  find_top(log_probabilities);
  start_candidates();
  for (std::size_t t = 0; t < top_count_; ++t)
    for (std::size_t p = 0; p < kept_count_; ++p) pass(p, t);
  const std::size_t count = prune();
  // Only impossible tokens: the prefixes stay as they are.
  if (count > 0) rewrite(count);
  ++frame_;
}

/// The `beam` most probable tokens, best first; of equal ones the lower id is kept. Insertion into a short sorted list:
/// almost all tokens of a vocabulary fail the first comparison.
void CtcSearch::find_top(std::span<const float> log_probabilities) noexcept {
  top_count_ = 0;
  for (std::size_t id = 0; id < log_probabilities.size(); ++id) {
    const float value = log_probabilities[id];
    if (!(value > kLogZero)) continue;  // NaN too
    if (top_count_ == beam() && !(value > top_[top_count_ - 1].log_probability)) continue;
    if (top_count_ < beam()) ++top_count_;
    std::size_t at = top_count_ - 1;
    for (; at > 0 && value > top_[at - 1].log_probability; --at) top_[at] = top_[at - 1];
    top_[at] = {static_cast<std::int32_t>(id), value};
  }
}

/// Clears the candidates and finds out which extensions are prefixes that are kept already: their sums must meet.
void CtcSearch::start_candidates() noexcept {
  const std::size_t n = beam();
  for (std::size_t p = 0; p < kept_count_; ++p) {
    candidates_[p] = {};
    candidates_[p].base = static_cast<std::int16_t>(p);
    for (std::size_t t = 0; t < top_count_; ++t) {
      Candidate& candidate = candidates_[n + p * n + t];
      candidate = {};
      candidate.base = static_cast<std::int16_t>(p);
      candidate.appended = top_[t].id;
      existing_[p * n + t] = -1;
    }
  }
  for (std::size_t q = 0; q < kept_count_; ++q) {
    const auto longer = tokens(q);
    if (longer.empty()) continue;
    for (std::size_t t = 0; t < top_count_; ++t) {
      if (top_[t].id != longer.back()) continue;
      for (std::size_t p = 0; p < kept_count_; ++p)
        if (std::ranges::equal(tokens(p), longer.first(longer.size() - 1)))
          existing_[p * n + t] = static_cast<std::int32_t>(q);
    }
  }
}

/// Prefix p followed by top token t; null when the prefix is full.
CtcSearch::Candidate* CtcSearch::extension(std::size_t prefix, std::size_t top) noexcept {
  const std::size_t n = beam();
  if (const std::int32_t same = existing_[prefix * n + top]; same >= 0)
    return &candidates_[static_cast<std::size_t>(same)];
  return kept_[prefix].length < config_.max_tokens ? &candidates_[n + prefix * n + top] : nullptr;
}

void CtcSearch::extend(Candidate* to, float from, float best, const Path& path, float log_probability) noexcept {
  if (to == nullptr) return;
  to->used = true;
  to->scores.token = log_add(to->scores.token, from + log_probability);
  if (to->scores.best_token < best + log_probability) {
    to->scores.best_token = best + log_probability;
    to->token_probability = log_probability;
    to->token_path = path;
  }
}

void CtcSearch::pass(std::size_t prefix, std::size_t top) noexcept {
  const Scores& from = kept_[prefix].scores;
  const TopToken token = top_[top];
  const auto index = static_cast<std::int16_t>(prefix);
  Candidate& same = candidates_[prefix];
  const Path best_path{index, from.best_ends_in_blank(), Path::Change::kAppend};
  if (token.id == config_.blank) {
    same.used = true;
    same.scores.blank = log_add(same.scores.blank, from.total() + token.log_probability);
    same.scores.best_blank = from.best() + token.log_probability;
    same.blank_path = {index, from.best_ends_in_blank(), Path::Change::kKeep};
    return;
  }
  const auto own = tokens(prefix);
  if (own.empty() || token.id != own.back())
    return extend(extension(prefix, top), from.total(), from.best(), best_path, token.log_probability);

  // The last token again without a blank between: the same prefix, its last token a frame later.
  same.used = true;
  same.scores.token = log_add(same.scores.token, from.token + token.log_probability);
  if (same.scores.best_token < from.best_token + token.log_probability) {
    same.scores.best_token = from.best_token + token.log_probability;
    // Another path may have given the token this frame already; its list is then kept.
    if (same.token_probability < token.log_probability) {
      same.token_probability = token.log_probability;
      same.token_path = {index, false, Path::Change::kMoveLast};
    }
  }
  // With a blank between it is a token more.
  extend(extension(prefix, top), from.blank, from.best_blank, {index, true, Path::Change::kAppend},
         token.log_probability);
}

/// Puts the best candidates into order_, best first; of equal ones the one of the better prefix and, within it, of the
/// more probable token comes first.
std::size_t CtcSearch::prune() noexcept {
  const std::size_t n = std::min<std::size_t>(beam(), kMaxBeam);
  std::size_t count = 0;
  float totals[kMaxBeam] = {};
  const auto offer = [&](std::size_t index) {
    const Candidate& candidate = candidates_[index];
    const float total = candidate.scores.total();
    if (!candidate.used || !(total > kLogZero)) return;
    if (count == n && !(total > totals[count - 1])) return;
    if (count < n) ++count;
    std::size_t at = count - 1;
    for (; at > 0 && total > totals[at - 1]; --at) {
      totals[at] = totals[at - 1];
      order_[at] = order_[at - 1];
    }
    totals[at] = total;
    order_[at] = static_cast<std::int32_t>(index);
  };
  for (std::size_t p = 0; p < kept_count_; ++p) {
    offer(p);
    for (std::size_t t = 0; t < top_count_; ++t) offer(n + p * n + t);
  }
  return count;
}

void CtcSearch::write_frames(const Path& path, std::int32_t* to, std::int32_t length) const noexcept {
  if (path.prefix < 0) {
    std::fill_n(to, length, frame_);  // no alignment ends like this: the list is never read as the best one
    return;
  }
  const Lists from = lists(generation_, static_cast<std::size_t>(path.prefix));
  const std::int32_t* const source = path.blank_list ? from.blank_frames : from.token_frames;
  const std::int32_t copied = path.change == Path::Change::kKeep ? length : length - 1;
  std::copy_n(source, copied, to);
  if (copied < length) to[length - 1] = frame_;
}

/// Writes the chosen prefixes into the other generation of lists.
void CtcSearch::rewrite(std::size_t count) noexcept {
  Prefix next[kMaxBeam];
  for (std::size_t i = 0; i < count; ++i) {
    const Candidate& candidate = candidates_[static_cast<std::size_t>(order_[i])];
    const auto own = tokens(static_cast<std::size_t>(candidate.base));
    const Lists to = lists(1 - generation_, i);
    std::ranges::copy(own, to.tokens);
    next[i].length = static_cast<std::int32_t>(own.size());
    if (candidate.appended >= 0) to.tokens[next[i].length++] = candidate.appended;
    next[i].scores = candidate.scores;
    write_frames(candidate.blank_path, to.blank_frames, next[i].length);
    write_frames(candidate.token_path, to.token_frames, next[i].length);
  }
  std::copy_n(next, count, kept_.begin());
  kept_count_ = count;
  generation_ = 1 - generation_;
}

}  // namespace bantam::speech
