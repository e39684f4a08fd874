// Short-time Fourier transform of a stream and its inverse by overlap and add, hop by hop.
//
//   dsp::Stft stft;
//   Status s = dsp::Stft::check(shape);                 // shape: size 512, hop 256, window
//   stft.lay_out(shape, block);
//   stft.analyse(samples, spectrum);                    // hop samples in, size/2+1 bins of the last `size` samples out
//   stft.synthesise(spectrum, samples);                 // the inverse: hop samples out, size - hop samples later
//
// Unchanged spectra give the input back, size - hop samples late. Memory: in a Block of the caller's, nothing is
// allocated. Threads: one at a time per object.
#pragma once

#include <complex>
#include <cstddef>

#include "bantam/status.h"
#include "dsp/block.h"
#include "dsp/fft.h"
#include "dsp/window.h"

namespace bantam::dsp {

struct StftShape {
  int size = 512;  ///< samples of one transform
  int hop = 256;   ///< samples from one to the next
  Window window = Window::kSqrtHann;
};

class Stft {
 public:
  /// Fails when the size is not supported, the hop is outside 1..size, or the window cannot be undone at that hop.
  static Status check(const StftShape& shape) noexcept;

  /// Requires check(shape).ok().
  void lay_out(const StftShape& shape, Block& block) noexcept;

  /// As after lay_out: silence before the first sample.
  void reset() noexcept;

  int size() const noexcept { return shape_.size; }
  int hop() const noexcept { return shape_.hop; }
  int bins() const noexcept { return shape_.size / 2 + 1; }

  void analyse(const float* samples, std::complex<float>* spectrum) noexcept;
  void synthesise(const std::complex<float>* spectrum, float* samples) noexcept;

  /// The two halves of synthesise: the windowed block of a spectrum, and adding a block of `size` samples to what
  /// overlaps. `weighted`: divide by what the windows add up to; without it blocks are summed as they are.
  void block_of(const std::complex<float>* spectrum, float* block) noexcept;
  void overlap_add(const float* block, bool weighted, float* samples) noexcept;

 private:
  StftShape shape_;
  RealFft fft_;
  float* window_ = nullptr;
  float* weight_ = nullptr;   ///< per sample of a hop: 1 / what the windows add up to
  float* history_ = nullptr;  ///< the last `size` input samples
  float* overlap_ = nullptr;  ///< output samples that still lack blocks
  float* work_ = nullptr;
};

}  // namespace bantam::dsp
