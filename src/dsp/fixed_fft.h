// Fourier transform of real 16-bit signals in 16-bit fixed point, for processors without a floating-point unit and for
// features whose models were trained on its very roundings.
//
// Radix 4 and 2, decimation in time, every stage scaled down by its radix so that nothing overflows: the result is the
// transform divided by n. Rounding is that of KissFFT's 16-bit build, to the bit; that library cannot be linked beside
// its float build, whose names it shares.
//
// Memory: in a Block of the caller's. Threads: one at a time per object. Errors: size() is 0 for sizes it cannot do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dsp/block.h"

namespace bantam::dsp {

struct ComplexInt16 {
  std::int16_t re = 0;
  std::int16_t im = 0;
};

class FixedRealFft {
 public:
  /// n: a power of two in 4..8192.
  static bool supports(int n) noexcept;

  /// Requires supports(n).
  void lay_out(int n, Block& block) noexcept;

  int size() const noexcept { return n_; }
  int bins() const noexcept { return n_ / 2 + 1; }

  /// n samples to n/2+1 bins. The arrays must not overlap.
  void forward(const std::int16_t* time, ComplexInt16* spectrum) const noexcept;

 private:
  void transform(ComplexInt16* out, const ComplexInt16* in, int size, int stride) const noexcept;
  void combine2(ComplexInt16* out, int quarter, int stride) const noexcept;
  void combine4(ComplexInt16* out, int quarter, int stride) const noexcept;

  int n_ = 0;
  ComplexInt16* twiddles_ = nullptr;        ///< exp(-2 pi i k / (n/2))
  ComplexInt16* super_twiddles_ = nullptr;  ///< exp(-pi i ((k+1) / (n/2) + 1/2))
  ComplexInt16* packed_ = nullptr;          ///< even samples as real parts, odd ones as imaginary parts
  ComplexInt16* half_ = nullptr;            ///< their transform
};

}  // namespace bantam::dsp
