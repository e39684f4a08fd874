#include "speech/rescorer.h"

#include <algorithm>

namespace bantam::speech {

Status Rescorer::place(Session& decoder, const Traits& traits, const StreamConfig& config) noexcept {
  decoder_ = &decoder;
  hypothesis_port_ = static_cast<std::size_t>(decoder.find_input("hyps"));
  length_port_ = static_cast<std::size_t>(decoder.find_input("hyps_lens"));
  frames_port_ = static_cast<std::size_t>(decoder.find_input("encoder_out"));
  // A decoder never looks ahead, so what follows a hypothesis does not matter; what follows the frames does.
  length_.bind(decoder, hypothesis_port_, 1, true);
  frames_.bind(decoder, frames_port_, 1, false);
  sos_ = traits.sos;
  eos_ = traits.eos;
  vocabulary_ = traits.vocabulary;
  ctc_weight_ = config.ctc_weight;
  rescoring_weight_ = config.rescoring_weight;
  reverse_weight_ = config.reverse_weight;
  return ok_status();
}

Status Rescorer::run(std::span<const float> encoded, std::int32_t frames, std::span<Hypothesis> nbest) noexcept {
  BANTAM_RETURN_IF_ERROR(frames_.resize(frames));
  for (Hypothesis& hypothesis : nbest) BANTAM_RETURN_IF_ERROR(score(encoded, hypothesis));
  // Insertion: few elements, stable, and no order is assumed of scores that are not numbers.
  for (std::size_t i = 1; i < nbest.size(); ++i)
    for (std::size_t k = i; k > 0 && nbest[k].score > nbest[k - 1].score; --k) std::swap(nbest[k], nbest[k - 1]);
  return ok_status();
}

Status Rescorer::score(std::span<const float> encoded, Hypothesis& hypothesis) noexcept {
  const auto length = static_cast<std::int32_t>(hypothesis.tokens.size()) + 1;
  BANTAM_RETURN_IF_ERROR(length_.resize(length));
  const Tensor input = decoder_->input(hypothesis_port_);
  auto* const tokens = input.as<std::int64_t>();
  std::fill_n(tokens, input.desc->elements(), std::int64_t{0});
  tokens[0] = sos_;
  std::ranges::copy(hypothesis.tokens, tokens + 1);
  *decoder_->input(length_port_).as<std::int64_t>() = length;
  // An invoke may overwrite its inputs: the frames are written anew each time.
  std::ranges::copy(encoded, decoder_->input(frames_port_).as<float>());
  BANTAM_RETURN_IF_ERROR(decoder_->invoke());
  float attention = sum(decoder_->output(0), hypothesis.tokens, false);
  if (reverse_weight_ > 0.0F)
    attention =
        (1.0F - reverse_weight_) * attention + reverse_weight_ * sum(decoder_->output(1), hypothesis.tokens, true);
  hypothesis.attention_score = attention;
  hypothesis.score = rescoring_weight_ * attention + ctc_weight_ * hypothesis.ctc_score;
  return ok_status();
}

/// The log-probability of the tokens, in their order or from last to first, and of the end behind them.
float Rescorer::sum(const Tensor& scores, std::span<const std::int32_t> tokens, bool reversed) const noexcept {
  const auto at = [&](std::size_t row, std::int32_t token) {
    return scores.as<float>()[row * static_cast<std::size_t>(vocabulary_) + static_cast<std::size_t>(token)];
  };
  float total = 0.0F;
  for (std::size_t j = 0; j < tokens.size(); ++j) total += at(j, reversed ? tokens[tokens.size() - 1 - j] : tokens[j]);
  return total + at(tokens.size(), eos_);
}

}  // namespace bantam::speech
