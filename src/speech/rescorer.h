// Scores hypotheses with the attention decoder and orders them by the sum of both scores.
//
// One hypothesis at a time, so that the decoder's activations are those of one and the results do not depend on how
// many there are. Nothing is allocated; the session must outlive the object.
#pragma once

#include <cstdint>
#include <span>

#include "bantam/speech.h"
#include "speech/axis.h"
#include "speech/traits.h"

namespace bantam::speech {

class Rescorer {
 public:
  Status place(Session& decoder, const Traits& traits, const StreamConfig& config) noexcept;
  Status set_threads(const Threads* threads) noexcept { return decoder_->set_threads(threads); }

  /// `encoded`: `frames` encoder frames. Fills attention_score and score, and sorts, best first. Every hypothesis has
  /// at most decoder_length - 1 tokens, all of them of the vocabulary.
  Status run(std::span<const float> encoded, std::int32_t frames, std::span<Hypothesis> nbest) noexcept;

 private:
  Status score(std::span<const float> encoded, Hypothesis& hypothesis) noexcept;
  float sum(const Tensor& scores, std::span<const std::int32_t> tokens, bool reversed) const noexcept;

  Session* decoder_ = nullptr;
  std::size_t hypothesis_port_ = 0;
  std::size_t length_port_ = 0;
  std::size_t frames_port_ = 0;
  Axis length_;
  Axis frames_;
  std::int32_t sos_ = 0;
  std::int32_t eos_ = 0;
  std::int32_t vocabulary_ = 0;
  float ctc_weight_ = 0.0F;
  float rescoring_weight_ = 0.0F;
  float reverse_weight_ = 0.0F;
};

}  // namespace bantam::speech
