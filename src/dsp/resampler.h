// Changes the sample rate of a stream by any rational ratio: polyphase filtering with a Kaiser-windowed sine cardinal.
//
//   if (dsp::Resampler::supports(44100, 16000)) ...
//   resampler.lay_out(44100, 16000, block);
//   std::size_t n = resampler.process(samples, out);    // out: room for max_output(samples.size())
//
// Pass band flat to 0.1 dB up to 0.42 of the lower rate, images and aliases beyond its half and a little below 80 dB.
// The output does not depend on how the input is cut. It is late by half a filter, latency() output samples.
// Memory: in a Block of the caller's, nothing is allocated. Threads: one at a time per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dsp/block.h"

namespace bantam::dsp {

class Resampler {
 public:
  /// Both rates in 1 kHz..768 kHz, at most 48 times apart.
  static bool supports(int from_rate, int to_rate) noexcept;

  /// Requires supports(from_rate, to_rate).
  void lay_out(int from_rate, int to_rate, Block& block) noexcept;
  void reset() noexcept;

  /// Most samples that `process` gives for n samples.
  std::size_t max_output(std::size_t n) const noexcept;
  /// Output samples by which the result is late, rounded down.
  std::size_t latency() const noexcept;

  /// Takes all samples; returns how many it wrote to `out`.
  std::size_t process(std::span<const float> samples, float* out) noexcept;

 private:
  float output() const noexcept;
  float dot(std::size_t phase) const noexcept;

  std::uint32_t up_ = 1;  ///< rates divided by their common factor
  std::uint32_t down_ = 1;
  std::uint32_t taps_ = 0;
  std::uint32_t phases_ = 0;    ///< filters in the table: up_, or fewer with interpolation between two
  std::uint32_t position_ = 0;  ///< of the next output after the newest input sample, in 1/up_ input samples
  std::uint32_t newest_ = 0;    ///< index in history_ of the newest sample
  float* filters_ = nullptr;    ///< phases_ + 1 filters of taps_ coefficients
  float* history_ = nullptr;    ///< 2 * taps_: every sample twice, so that the last taps_ always lie in a row
};

}  // namespace bantam::dsp
