// Fourier transforms of real signals in 16-bit and 32-bit fixed point and in float, in the arithmetic of KissFFT.
//
//   std::vector<Complex<std::int16_t>> twiddles(twiddle_count(512));
//   fill_twiddles(512, false, twiddles.data());
//   forward_real(512, twiddles.data(), samples, spectrum, work);      // work: work_count(512) values
//
// Radix 4, 2, 3 and 5, decimation in time. In fixed point every stage is scaled down by its radix so that nothing
// overflows: the forward result is the transform divided by n, and the inverse has no further scale. Roundings are
// KissFFT's to the bit (that library cannot be linked in several number types, whose names are the same). In float the
// forward transform is unscaled and the inverse is n times the signal.
//
// Called by the operator real_fft and by dsp::FixedRealFft. Memory: the caller's; nothing is allocated. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bantam::signal {

template <typename T>
struct Complex {
  T re{};
  T im{};
};

inline constexpr int kMaxFft = 65536;

/// True for even n in 4..kMaxFft whose half has no prime factor but 2, 3 and 5.
bool supports_real_fft(std::int64_t n) noexcept;

/// Complex constants of one transform: n/2 twiddles of the half-length transform and n/4 that join its halves.
constexpr std::size_t twiddle_count(int n) noexcept { return static_cast<std::size_t>(n / 2 + n / 4); }

/// Complex values of work memory.
constexpr std::size_t work_count(int n) noexcept { return static_cast<std::size_t>(n); }

/// T: std::int16_t, std::int32_t or float, here and below. n is one that supports_real_fft.
template <typename T>
void fill_twiddles(int n, bool inverse, Complex<T>* twiddles) noexcept;

/// n samples to n/2+1 bins. `twiddles` are those of inverse = false; the arrays do not overlap.
template <typename T>
void forward_real(int n, const Complex<T>* twiddles, const T* time, Complex<T>* spectrum, Complex<T>* work) noexcept;

/// n/2+1 bins to n samples. `twiddles` are those of inverse = true; the arrays do not overlap.
template <typename T>
void inverse_real(int n, const Complex<T>* twiddles, const Complex<T>* spectrum, T* time, Complex<T>* work) noexcept;

}  // namespace bantam::signal
