#include "dsp/fixed_fft.h"

namespace bantam::dsp {

bool FixedRealFft::supports(int n) noexcept { return signal::supports_real_fft(n); }

void FixedRealFft::lay_out(int n, Block& block) noexcept {
  n_ = n;
  twiddles_ = block.take<ComplexInt16>(signal::twiddle_count(n));
  work_ = block.take<ComplexInt16>(signal::work_count(n));
  if (work_ != nullptr) signal::fill_twiddles(n, false, twiddles_);
}

void FixedRealFft::forward(const std::int16_t* time, ComplexInt16* spectrum) const noexcept {
  signal::forward_real(n_, twiddles_, time, spectrum, work_);
}

}  // namespace bantam::dsp
