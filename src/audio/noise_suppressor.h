// Noise suppression by a model, whatever it takes: waves, spectra, or magnitudes for which it gives a mask.
//
// Sound comes and goes in frames of one size; the model's own hop may be any other. Then the output starts with as much
// silence as is needed for every frame to be complete: latency().
// Memory: in a Block of the caller's; the session's is the fleet's. Threads: one at a time. Errors: of the invoke.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "audio/shapes.h"
#include "dsp/block.h"
#include "dsp/stft.h"

namespace bantam::audio {

class NoiseSuppressor {
 public:
  /// frame: samples of every process call.
  void lay_out(const NoiseShape& shape, int frame, dsp::Block& block) noexcept;
  /// `second`: null when the shape has none. Must outlive the object's use.
  void attach(Session* session, Session* second) noexcept;
  void reset() noexcept;

  /// `active` false: the sound passes unchanged, as late as otherwise.
  Status process(const std::int16_t* in, bool active, std::int16_t* out) noexcept;

  int latency() const noexcept { return latency_; }

 private:
  Status step(bool active) noexcept;
  Status run_wave(float* samples) noexcept;
  Status run_spectrum() noexcept;
  Status run_mask() noexcept;
  Status run_second(float* samples) noexcept;

  NoiseShape shape_;
  int frame_ = 0;
  int latency_ = 0;
  Session* session_ = nullptr;
  Session* second_ = nullptr;
  dsp::Stft stft_;
  std::complex<float>* spectrum_ = nullptr;
  float* blocks_ = nullptr;  ///< one block of sound for the second model
  float* hop_ = nullptr;     ///< input on its way in, then the result
  int filled_ = 0;           ///< samples in hop_
  float* ready_ = nullptr;   ///< results that do not make a frame yet
  int ready_count_ = 0;
  bool was_active_ = true;
};

}  // namespace bantam::audio
