// When an utterance is over: rules over trailing blanks, and over how long the utterance is.
//
// Fed with the probability of the blank of every encoder frame; asked once per chunk. Freestanding value type.
#pragma once

#include <cstdint>

#include "bantam/speech.h"

namespace bantam::speech {

class Endpoint {
 public:
  Endpoint() = default;
  /// `frame_ms`: length of an encoder frame. `blank_threshold`: a frame of larger blank probability is silence.
  Endpoint(const EndpointRules& rules, std::int32_t frame_ms, float blank_threshold)
      : rules_(rules), frame_ms_(frame_ms), blank_threshold_(blank_threshold) {}

  void reset() noexcept { frames_ = trailing_ = 0; }

  void step(float blank_probability) noexcept {
    ++frames_;
    trailing_ = blank_probability > blank_threshold_ ? trailing_ + 1 : 0;
  }

  /// `decoded`: whether the best partial text says anything.
  bool reached(bool decoded) const noexcept {
    for (const EndpointRule& rule : rules_)
      if ((decoded || !rule.needs_text) && trailing_ * frame_ms_ >= rule.trailing_silence_ms &&
          frames_ * frame_ms_ >= rule.utterance_ms)
        return true;
    return false;
  }

 private:
  EndpointRules rules_{};
  std::int64_t frame_ms_ = 40;
  float blank_threshold_ = 0.8F;
  std::int64_t frames_ = 0;
  std::int64_t trailing_ = 0;
};

}  // namespace bantam::speech
