#include "dsp/fixed_fft.h"

#include <cmath>

namespace bantam::dsp {
namespace {

constexpr int kFractionBits = 15;
constexpr std::int32_t kLargest = 32767;
constexpr double kPi = 3.14159265358979323846;

std::int16_t rounded(std::int32_t product) noexcept {
  return static_cast<std::int16_t>((product + (1 << (kFractionBits - 1))) >> kFractionBits);
}

ComplexInt16 times(ComplexInt16 a, ComplexInt16 b) noexcept {
  return {rounded(a.re * b.re - a.im * b.im), rounded(a.re * b.im + a.im * b.re)};
}

ComplexInt16 plus(ComplexInt16 a, ComplexInt16 b) noexcept {
  return {static_cast<std::int16_t>(a.re + b.re), static_cast<std::int16_t>(a.im + b.im)};
}

ComplexInt16 minus(ComplexInt16 a, ComplexInt16 b) noexcept {
  return {static_cast<std::int16_t>(a.re - b.re), static_cast<std::int16_t>(a.im - b.im)};
}

ComplexInt16 divided(ComplexInt16 a, int divisor) noexcept {
  return {rounded(a.re * (kLargest / divisor)), rounded(a.im * (kLargest / divisor))};
}

std::int16_t halved(std::int32_t x) noexcept { return static_cast<std::int16_t>(x >> 1); }

ComplexInt16 unit(double phase) noexcept {
  return {static_cast<std::int16_t>(std::floor(0.5 + kLargest * std::cos(phase))),
          static_cast<std::int16_t>(std::floor(0.5 + kLargest * std::sin(phase)))};
}

}  // namespace

bool FixedRealFft::supports(int n) noexcept { return n >= 4 && n <= 8192 && (n & (n - 1)) == 0; }

void FixedRealFft::lay_out(int n, Block& block) noexcept {
  const int half = n / 2;
  n_ = n;
  twiddles_ = block.take<ComplexInt16>(static_cast<std::size_t>(half));
  super_twiddles_ = block.take<ComplexInt16>(static_cast<std::size_t>(half / 2));
  packed_ = block.take<ComplexInt16>(static_cast<std::size_t>(half));
  half_ = block.take<ComplexInt16>(static_cast<std::size_t>(half));
  if (half_ == nullptr) return;
  for (int k = 0; k < half; ++k) twiddles_[k] = unit(-2 * kPi * k / half);
  for (int k = 0; k < half / 2; ++k) super_twiddles_[k] = unit(-kPi * (static_cast<double>(k + 1) / half + 0.5));
}

void FixedRealFft::combine2(ComplexInt16* out, int part, int stride) const noexcept {
  for (int k = 0; k < part; ++k) {
    const ComplexInt16 a = divided(out[k], 2);
    const ComplexInt16 b = times(divided(out[part + k], 2), twiddles_[k * stride]);
    out[k] = plus(a, b);
    out[part + k] = minus(a, b);
  }
}

void FixedRealFft::combine4(ComplexInt16* out, int part, int stride) const noexcept {
  for (int k = 0; k < part; ++k) {
    const ComplexInt16 a = divided(out[k], 4);
    const ComplexInt16 b = times(divided(out[part + k], 4), twiddles_[k * stride]);
    const ComplexInt16 c = times(divided(out[2 * part + k], 4), twiddles_[2 * k * stride]);
    const ComplexInt16 d = times(divided(out[3 * part + k], 4), twiddles_[3 * k * stride]);
    const ComplexInt16 even_sum = plus(a, c);
    const ComplexInt16 even_difference = minus(a, c);
    const ComplexInt16 odd_sum = plus(b, d);
    const ComplexInt16 odd_difference = minus(b, d);
    const ComplexInt16 turned = {odd_difference.im, static_cast<std::int16_t>(-odd_difference.re)};
    out[k] = plus(even_sum, odd_sum);
    out[part + k] = plus(even_difference, turned);
    out[2 * part + k] = minus(even_sum, odd_sum);
    out[3 * part + k] = minus(even_difference, turned);
  }
}

/// The transform of every stride-th element of `in`; the depth is that of the factorisation, at most 7.
void FixedRealFft::transform(ComplexInt16* out, const ComplexInt16* in, int size, int stride) const noexcept {
  const int radix = size % 4 == 0 ? 4 : 2;
  const int part = size / radix;
  for (int q = 0; q < radix; ++q) {
    if (part == 1) {
      out[q] = in[q * stride];
    } else {
      transform(out + q * part, in + q * stride, part, stride * radix);
    }
  }
  if (radix == 4) {
    combine4(out, part, stride);
  } else {
    combine2(out, part, stride);
  }
}

void FixedRealFft::forward(const std::int16_t* time, ComplexInt16* spectrum) const noexcept {
  const int half = n_ / 2;
  for (int k = 0; k < half; ++k) packed_[k] = {time[2 * k], time[2 * k + 1]};
  transform(half_, packed_, half, 1);
  const ComplexInt16 first = divided(half_[0], 2);
  spectrum[0] = {static_cast<std::int16_t>(first.re + first.im), 0};
  spectrum[half] = {static_cast<std::int16_t>(first.re - first.im), 0};
  for (int k = 1; k <= half / 2; ++k) {
    const ComplexInt16 a = divided(half_[k], 2);
    const ComplexInt16 b = divided({half_[half - k].re, static_cast<std::int16_t>(-half_[half - k].im)}, 2);
    const ComplexInt16 sum = plus(a, b);
    const ComplexInt16 turned = times(minus(a, b), super_twiddles_[k - 1]);
    spectrum[k] = {halved(sum.re + turned.re), halved(sum.im + turned.im)};
    spectrum[half - k] = {halved(sum.re - turned.re), halved(turned.im - sum.im)};
  }
}

}  // namespace bantam::dsp
