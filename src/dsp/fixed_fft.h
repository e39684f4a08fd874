// Fourier transform of real 16-bit signals in 16-bit fixed point, for processors without a floating-point unit and for
// features whose models were trained on its very roundings.
//
// The transform divided by n, in the arithmetic of signal/real_fft.h, with constants and work space of its own.
//
// Memory: in a Block of the caller's. Threads: one at a time per object. Errors: size() is 0 for sizes it cannot do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dsp/block.h"
#include "signal/real_fft.h"

namespace bantam::dsp {

using ComplexInt16 = signal::Complex<std::int16_t>;

class FixedRealFft {
 public:
  /// n: even, in 4..65536, without prime factors but 2, 3 and 5.
  static bool supports(int n) noexcept;

  /// Requires supports(n).
  void lay_out(int n, Block& block) noexcept;

  int size() const noexcept { return n_; }
  int bins() const noexcept { return n_ / 2 + 1; }

  /// n samples to n/2+1 bins. The arrays must not overlap.
  void forward(const std::int16_t* time, ComplexInt16* spectrum) const noexcept;

 private:
  int n_ = 0;
  ComplexInt16* twiddles_ = nullptr;
  ComplexInt16* work_ = nullptr;
};

}  // namespace bantam::dsp
