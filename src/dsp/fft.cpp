#include "dsp/fft.h"

#include <kissfft/kiss_fftr.h>

#include <cstdint>

namespace bantam::dsp {
namespace {

constexpr int kLargest = 65536;

bool supported(int n) noexcept {
  if (n < 2 || n > kLargest || n % 2 != 0) return false;
  for (int factor : {2, 3, 5}) {
    while (n % factor == 0) n /= factor;
  }
  return n == 1;
}

/// Bytes of one plan, rounded up so that the next one is aligned.
std::size_t plan_bytes(int n, bool inverse) noexcept {
  std::size_t bytes = 0;
  kiss_fftr_alloc(n, inverse ? 1 : 0, nullptr, &bytes);
  return (bytes + RealFft::kAlignment - 1) / RealFft::kAlignment * RealFft::kAlignment;
}

}  // namespace

std::size_t RealFft::bytes(int n) noexcept { return supported(n) ? plan_bytes(n, false) + plan_bytes(n, true) : 0; }

Status RealFft::place(int n, std::span<std::byte> memory) noexcept {
  const std::size_t needed = bytes(n);
  if (needed == 0) {
    return failure(StatusCode::kUnsupported, "transform size must be even, at most 65536, of factors 2, 3 and 5", n);
  }
  if (memory.size() < needed) {
    return failure(StatusCode::kArenaTooSmall, "memory of a Fourier transform",
                   static_cast<std::int64_t>(memory.size()), static_cast<std::int64_t>(needed));
  }
  const auto misalignment = reinterpret_cast<std::uintptr_t>(memory.data()) % kAlignment;
  if (misalignment != 0) {
    return failure(StatusCode::kMisaligned, "memory of a Fourier transform", static_cast<std::int64_t>(misalignment),
                   0);
  }
  std::size_t forward_bytes = plan_bytes(n, false);
  std::size_t inverse_bytes = plan_bytes(n, true);
  forward_ = kiss_fftr_alloc(n, 0, memory.data(), &forward_bytes);
  inverse_ = kiss_fftr_alloc(n, 1, memory.data() + plan_bytes(n, false), &inverse_bytes);
  n_ = n;
  return ok_status();
}

// std::complex<float> and kiss_fft_cpx are both two floats, real part first ([complex.numbers.general]).
static_assert(sizeof(std::complex<float>) == sizeof(kiss_fft_cpx));

void RealFft::forward(const float* time, std::complex<float>* spectrum) const noexcept {
  kiss_fftr(static_cast<kiss_fftr_cfg>(forward_), time, reinterpret_cast<kiss_fft_cpx*>(spectrum));
}

void RealFft::inverse(const std::complex<float>* spectrum, float* time) const noexcept {
  kiss_fftri(static_cast<kiss_fftr_cfg>(inverse_), reinterpret_cast<const kiss_fft_cpx*>(spectrum), time);
  const float scale = 1.0F / static_cast<float>(n_);
  for (int t = 0; t < n_; ++t) time[t] *= scale;
}

}  // namespace bantam::dsp
