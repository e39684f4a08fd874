// Log-mel features of the kind that Kaldi and WeNet compute, frame by frame, from 16-bit sound of any block size.
//
//   dsp::KaldiFbank fbank;
//   Status s = fbank.place({}, memory);          // KaldiFbank::bytes({}) bytes, aligned to Block::kAlignment
//   while (!samples.empty()) {
//     bool complete = false;
//     samples = samples.subspan(fbank.feed(samples, features, &complete));
//     if (complete) ...                          // `features` holds one frame
//   }
//
// Per frame: mean removed, pre-emphasis 0.97, Povey window, power spectrum, triangles linear in mel, natural log of at
// least FLT_EPSILON. Samples count in the range of 16-bit integers. Frames never depend on how the sound was cut into
// blocks; the last, incomplete frame of a sound gives none. Memory: nothing is allocated; the memory must outlive the
// object. Threads: one at a time.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bantam/status.h"
#include "dsp/block.h"
#include "dsp/fft.h"

namespace bantam::dsp {

struct FbankConfig {
  int sample_rate = 16000;  ///< Hz
  int frame_samples = 400;  ///< window
  int shift_samples = 160;  ///< from frame to frame, at most frame_samples
  int bins = 80;            ///< triangles
  float low_hz = 20.0F;
  float high_hz = 8000.0F;  ///< at most half the sample rate
};

class KaldiFbank {
 public:
  /// Bytes that `place` needs; 0 when the configuration is outside of what is supported.
  static std::size_t bytes(const FbankConfig& config) noexcept;

  /// Fails with kUnsupported, kArenaTooSmall or kMisaligned.
  Status place(const FbankConfig& config, std::span<std::byte> memory) noexcept;

  /// Forgets the samples heard so far.
  void reset() noexcept { held_ = 0; }

  /// Takes samples up to the end of the next frame and returns how many. When the frame is whole, *complete is true and
  /// `features` (bins floats) is written; else all samples were taken and *complete is false.
  std::size_t feed(std::span<const std::int16_t> samples, std::span<float> features, bool* complete) noexcept;

  const FbankConfig& config() const noexcept { return config_; }

 private:
  /// One triangle: weights of consecutive spectrum bins.
  struct Triangle {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t weights = 0;  ///< index into weights_
  };

  void lay_out(Block& block) noexcept;
  void make_window() noexcept;
  void make_triangles() noexcept;
  void compute(std::span<float> features) noexcept;

  FbankConfig config_{};
  RealFft fft_;
  std::span<std::byte> fft_memory_;
  std::span<std::int16_t> frame_;
  std::span<float> window_;
  std::span<float> padded_;  ///< the windowed frame, zeros behind
  std::span<std::complex<float>> spectrum_;
  std::span<float> power_;
  std::span<Triangle> triangles_;
  std::span<float> weights_;
  std::size_t held_ = 0;  ///< samples of frame_ that are there
};

}  // namespace bantam::dsp
