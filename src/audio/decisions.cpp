#include "audio/decisions.h"

#include <algorithm>
#include <numeric>

namespace bantam::audio {

bool SpeechGate::update(bool voiced, int samples) noexcept {
  if (voiced == speech_) {
    lasting_ = 0;
    return speech_;
  }
  lasting_ = std::min(lasting_, 1 << 30) + samples;
  if (lasting_ >= (speech_ ? min_noise_ : min_speech_)) {
    speech_ = voiced;
    lasting_ = 0;
  }
  return speech_;
}

void SpeechGate::reset() noexcept {
  lasting_ = 0;
  speech_ = false;
}

void WordTrigger::lay_out(int window, int rest, dsp::Block& block) noexcept {
  window_ = window;
  rest_ = rest;
  recent_ = block.take<float>(static_cast<std::size_t>(window));
}

bool WordTrigger::update(float probability, int samples, float threshold) noexcept {
  recent_[next_] = probability;
  next_ = (next_ + 1) % window_;
  smoothed_ = std::accumulate(recent_, recent_ + window_, 0.0F) / static_cast<float>(window_);
  resting_ = std::max(0, resting_ - samples);
  return resting_ == 0 && smoothed_ >= threshold;
}

void WordTrigger::rest() noexcept {
  std::fill_n(recent_, window_, 0.0F);
  resting_ = rest_;
}

void WordTrigger::reset() noexcept {
  std::fill_n(recent_, window_, 0.0F);
  next_ = 0;
  resting_ = 0;
  smoothed_ = 0;
}

}  // namespace bantam::audio
