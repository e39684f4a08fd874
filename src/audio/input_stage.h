// From what the application feeds to one microphone and one reference channel at 16 kHz, frame by frame.
//
// Memory: in a Block of the caller's. Threads: write from one thread, read from another; lay_out and reset need both to
// rest.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "audio/sample_ring.h"
#include "bantam/audio.h"
#include "dsp/block.h"
#include "dsp/resampler.h"

namespace bantam::audio {

/// Channels of the interleaved input, counted from 0; -1: none.
struct Channels {
  int count = 0;
  int microphone = -1;
  int reference = -1;
};

/// Requires a format that check() has passed.
Channels channels_of(const InputConfig& input);

class InputStage {
 public:
  /// frame: samples of 16 kHz that `read` gives.
  void lay_out(const InputConfig& config, const Channels& channels, int frame, dsp::Block& block) noexcept;
  void reset() noexcept;

  /// Writes what fits; returns how many samples.
  std::size_t write(std::span<const std::int16_t> interleaved) noexcept;
  /// Writes what fits and drops the rest in whole sample frames, so that channels stay channels.
  void write_or_drop(std::span<const std::int16_t> interleaved) noexcept;
  /// Sample frames dropped so far.
  std::uint64_t dropped() const noexcept;

  float free_share() const noexcept { return ring_.free_share(); }

  /// One frame per channel; false, with nothing lost, when there is too little input. `reference` may be null.
  bool read(std::int16_t* microphone, std::int16_t* reference) noexcept;

 private:
  bool read_piece(std::size_t frames) noexcept;
  bool fill_pending() noexcept;

  Channels channels_;
  int frame_ = 0;
  SampleRing ring_;
  std::size_t phase_ = 0;  ///< samples of the unfinished sample frame at the ring's end; the writer's
  std::size_t skip_ = 0;   ///< samples to drop before the next sample frame begins; the writer's
  std::atomic<std::uint64_t> dropped_samples_{0};

  // Of a read.
  std::int16_t* piece_ = nullptr;  ///< interleaved
  std::size_t piece_frames_ = 0;

  // Of resampling, for microphone and reference.
  struct Resampled {
    dsp::Resampler resampler;
    float* in = nullptr;
    float* pending = nullptr;
  };
  bool resampling_ = false;
  Resampled resampled_[2];
  std::size_t pending_ = 0;  ///< samples in `pending` of both
};

}  // namespace bantam::audio
