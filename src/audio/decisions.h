// From probabilities to decisions: when speech starts and ends, and when a word was said.
//
// Plain state machines without sound or models. Memory: WordTrigger keeps its probabilities in a Block of the caller's.
// Threads: one at a time per object.
#pragma once

#include <cstdint>

#include "dsp/block.h"

namespace bantam::audio {

/// Speech counts once it has lasted, and has ended once silence has lasted.
class SpeechGate {
 public:
  SpeechGate() = default;
  SpeechGate(int min_speech, int min_noise) noexcept : min_speech_(min_speech), min_noise_(min_noise) {}

  /// `voiced` holds for the next `samples` samples. Returns what counts at their end.
  bool update(bool voiced, int samples) noexcept;
  bool speech() const noexcept { return speech_; }
  void reset() noexcept;

 private:
  int min_speech_ = 0;  ///< samples
  int min_noise_ = 0;
  int lasting_ = 0;  ///< samples for which the opposite of speech_ has lasted
  bool speech_ = false;
};

/// Averages probabilities over the newest invokes, fires above a threshold, and then rests.
class WordTrigger {
 public:
  /// window: invokes, at least 1. rest: samples.
  void lay_out(int window, int rest, dsp::Block& block) noexcept;

  /// The probability found `samples` after the one before. True when the word fires.
  bool update(float probability, int samples, float threshold) noexcept;
  /// The mean of the window after the last update, before a firing emptied it.
  float smoothed() const noexcept { return smoothed_; }
  /// Starts to rest: nothing fires, and what was heard so far does not count.
  void rest() noexcept;
  void reset() noexcept;

 private:
  float* recent_ = nullptr;
  int window_ = 1;
  int next_ = 0;
  int rest_ = 0;
  int resting_ = 0;  ///< samples still to go
  float smoothed_ = 0;
};

}  // namespace bantam::audio
