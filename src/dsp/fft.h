// Fourier transforms of real signals: KissFFT with its plans in memory that the caller gives.
//
//   dsp::RealFft fft;
//   Status s = fft.place(512, memory);     // memory: RealFft::bytes(512) bytes, aligned to 16
//   fft.forward(samples, spectrum);        // 512 floats -> 257 complex values
//
// Memory: nothing is allocated; the memory must outlive the object. Threads: an object belongs to one thread at a time,
// since the transforms use work space in its memory.
#pragma once

#include <complex>
#include <cstddef>
#include <span>

#include "bantam/status.h"

namespace bantam::dsp {

class RealFft {
 public:
  static constexpr std::size_t kAlignment = 16;

  /// Bytes that `place` needs for transforms of `n` samples; 0 when n is not supported: it must be even, in 2..65536,
  /// and have no prime factor but 2, 3 and 5, for which KissFFT needs no memory beyond its plan.
  static std::size_t bytes(int n) noexcept;

  /// Prepares transforms of n samples in `memory`. Fails with kUnsupported, kArenaTooSmall or kMisaligned.
  Status place(int n, std::span<std::byte> memory) noexcept;

  int size() const noexcept { return n_; }
  int bins() const noexcept { return n_ / 2 + 1; }

  /// spectrum[k] = sum over t of time[t] * exp(-2 pi i k t / n), k = 0..n/2. The arrays must not overlap.
  void forward(const float* time, std::complex<float>* spectrum) const noexcept;
  /// The inverse of `forward`, scaled by 1/n. Bins 0 and n/2 are taken as real. The arrays must not overlap.
  void inverse(const std::complex<float>* spectrum, float* time) const noexcept;

 private:
  void* forward_ = nullptr;
  void* inverse_ = nullptr;
  int n_ = 0;
};

}  // namespace bantam::dsp
