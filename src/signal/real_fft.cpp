#include "signal/real_fft.h"

#include <cmath>
#include <initializer_list>
#include <type_traits>

namespace bantam::signal {
namespace {

constexpr double kPi = 3.14159265358979323846;

/// Scalar arithmetic of fixed-point numbers of all fraction bits; sums wrap like two's complement.
template <typename T>
struct Arithmetic {
  using Wide = std::conditional_t<sizeof(T) == 2, std::int32_t, std::int64_t>;
  using UnsignedWide = std::make_unsigned_t<Wide>;
  static constexpr int kFractionBits = 8 * static_cast<int>(sizeof(T)) - 1;
  static constexpr Wide kLargest = (Wide{1} << kFractionBits) - 1;

  static Wide product(T a, T b) noexcept { return static_cast<Wide>(a) * b; }
  static Wide add(Wide a, Wide b) noexcept {
    return static_cast<Wide>(static_cast<UnsignedWide>(a) + static_cast<UnsignedWide>(b));
  }
  static Wide subtract(Wide a, Wide b) noexcept {
    return static_cast<Wide>(static_cast<UnsignedWide>(a) - static_cast<UnsignedWide>(b));
  }
  static T narrow(Wide x) noexcept { return static_cast<T>(x); }
  static T rounded(Wide x) noexcept { return narrow(add(x, Wide{1} << (kFractionBits - 1)) >> kFractionBits); }
  static T divided(T x, int divisor) noexcept { return rounded(product(x, static_cast<T>(kLargest / divisor))); }
  /// Half of a sum: of 17 bits for 16-bit numbers, of a wrapped one for 32-bit numbers.
  static T halved(Wide x) noexcept {
    if constexpr (sizeof(T) == 2) return narrow(x >> 1);
    return static_cast<T>(narrow(x) >> 1);
  }
  static T constant(double x) noexcept { return narrow(static_cast<Wide>(std::floor(0.5 + kLargest * x))); }
};

template <>
struct Arithmetic<float> {
  static float product(float a, float b) noexcept { return a * b; }
  static float add(float a, float b) noexcept { return a + b; }
  static float subtract(float a, float b) noexcept { return a - b; }
  static float narrow(float x) noexcept { return x; }
  static float rounded(float x) noexcept { return x; }
  static float divided(float x, int /*divisor*/) noexcept { return x; }
  static float halved(float x) noexcept { return x * 0.5F; }
  static float constant(double x) noexcept { return static_cast<float>(x); }
};

template <typename T>
T plus(T a, T b) noexcept {
  using A = Arithmetic<T>;
  return A::narrow(A::add(a, b));
}
template <typename T>
T minus(T a, T b) noexcept {
  using A = Arithmetic<T>;
  return A::narrow(A::subtract(a, b));
}
template <typename T>
T times(T a, T b) noexcept {
  using A = Arithmetic<T>;
  return A::rounded(A::product(a, b));
}
template <typename T>
Complex<T> plus(Complex<T> a, Complex<T> b) noexcept {
  return {plus(a.re, b.re), plus(a.im, b.im)};
}
template <typename T>
Complex<T> minus(Complex<T> a, Complex<T> b) noexcept {
  return {minus(a.re, b.re), minus(a.im, b.im)};
}
template <typename T>
Complex<T> times(Complex<T> a, Complex<T> b) noexcept {
  using A = Arithmetic<T>;
  return {A::rounded(A::subtract(A::product(a.re, b.re), A::product(a.im, b.im))),
          A::rounded(A::add(A::product(a.re, b.im), A::product(a.im, b.re)))};
}
template <typename T>
Complex<T> times(Complex<T> a, T b) noexcept {
  return {times(a.re, b), times(a.im, b)};
}
template <typename T>
Complex<T> divided(Complex<T> a, int divisor) noexcept {
  return {Arithmetic<T>::divided(a.re, divisor), Arithmetic<T>::divided(a.im, divisor)};
}
template <typename T>
Complex<T> halved(Complex<T> a) noexcept {
  return {Arithmetic<T>::halved(a.re), Arithmetic<T>::halved(a.im)};
}
template <typename T>
Complex<T> conjugate(Complex<T> a) noexcept {
  return {a.re, minus(T{0}, a.im)};
}
/// a * i.
template <typename T>
Complex<T> turned(Complex<T> a) noexcept {
  return {minus(T{0}, a.im), a.re};
}

/// The transform of half length.
template <typename T>
struct HalfTransform {
  const Complex<T>* twiddles;
  bool inverse;

  void combine2(Complex<T>* out, int part, int stride) const noexcept {
    for (int k = 0; k < part; ++k) {
      const Complex<T> a = divided(out[k], 2);
      const Complex<T> b = times(divided(out[part + k], 2), twiddles[k * stride]);
      out[k] = plus(a, b);
      out[part + k] = minus(a, b);
    }
  }

  void combine3(Complex<T>* out, int part, int stride) const noexcept {
    const T sine = twiddles[stride * part].im;
    for (int k = 0; k < part; ++k) {
      const Complex<T> a = divided(out[k], 3);
      const Complex<T> b = times(divided(out[part + k], 3), twiddles[k * stride]);
      const Complex<T> c = times(divided(out[2 * part + k], 3), twiddles[2 * k * stride]);
      const Complex<T> sum = plus(b, c);
      const Complex<T> middle = minus(a, halved(sum));
      const Complex<T> difference = turned(times(minus(b, c), sine));
      out[k] = plus(a, sum);
      out[part + k] = plus(middle, difference);
      out[2 * part + k] = minus(middle, difference);
    }
  }

  void combine4(Complex<T>* out, int part, int stride) const noexcept {
    for (int k = 0; k < part; ++k) {
      const Complex<T> a = divided(out[k], 4);
      const Complex<T> b = times(divided(out[part + k], 4), twiddles[k * stride]);
      const Complex<T> c = times(divided(out[2 * part + k], 4), twiddles[2 * k * stride]);
      const Complex<T> d = times(divided(out[3 * part + k], 4), twiddles[3 * k * stride]);
      const Complex<T> even_sum = plus(a, c);
      const Complex<T> even_difference = minus(a, c);
      const Complex<T> odd_sum = plus(b, d);
      const Complex<T> odd_difference = turned(minus(b, d));
      out[k] = plus(even_sum, odd_sum);
      out[2 * part + k] = minus(even_sum, odd_sum);
      const Complex<T> forward = minus(even_difference, odd_difference);
      const Complex<T> backward = plus(even_difference, odd_difference);
      out[part + k] = inverse ? backward : forward;
      out[3 * part + k] = inverse ? forward : backward;
    }
  }

  void combine5(Complex<T>* out, int part, int stride) const noexcept {
    const Complex<T> first = twiddles[stride * part];
    const Complex<T> second = twiddles[2 * stride * part];
    for (int k = 0; k < part; ++k) {
      const Complex<T> a = divided(out[k], 5);
      const Complex<T> b = times(divided(out[part + k], 5), twiddles[k * stride]);
      const Complex<T> c = times(divided(out[2 * part + k], 5), twiddles[2 * k * stride]);
      const Complex<T> d = times(divided(out[3 * part + k], 5), twiddles[3 * k * stride]);
      const Complex<T> e = times(divided(out[4 * part + k], 5), twiddles[4 * k * stride]);
      const Complex<T> outer_sum = plus(b, e);
      const Complex<T> outer_difference = minus(b, e);
      const Complex<T> inner_sum = plus(c, d);
      const Complex<T> inner_difference = minus(c, d);
      out[k] = plus(a, plus(outer_sum, inner_sum));
      const Complex<T> near = plus(plus(a, times(outer_sum, first.re)), times(inner_sum, second.re));
      const Complex<T> far = plus(plus(a, times(outer_sum, second.re)), times(inner_sum, first.re));
      const Complex<T> near_turn = turned(plus(times(outer_difference, first.im), times(inner_difference, second.im)));
      const Complex<T> far_turn = turned(minus(times(outer_difference, second.im), times(inner_difference, first.im)));
      out[part + k] = plus(near, near_turn);
      out[4 * part + k] = minus(near, near_turn);
      out[2 * part + k] = plus(far, far_turn);
      out[3 * part + k] = minus(far, far_turn);
    }
  }

  /// The transform of every stride-th element of `in`; its depth is that of the factorisation, at most 15.
  void run(Complex<T>* out, const Complex<T>* in, int size, int stride) const noexcept {
    const int radix = size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : size % 3 == 0 ? 3 : 5;
    const int part = size / radix;
    for (int q = 0; q < radix; ++q) {
      if (part == 1) {
        out[q] = in[q * stride];
      } else {
        run(out + q * part, in + q * stride, part, stride * radix);
      }
    }
    switch (radix) {
      case 2: return combine2(out, part, stride);
      case 3: return combine3(out, part, stride);
      case 4: return combine4(out, part, stride);
      default: return combine5(out, part, stride);
    }
  }
};

template <typename T>
Complex<T> unit(double phase) noexcept {
  return {Arithmetic<T>::constant(std::cos(phase)), Arithmetic<T>::constant(std::sin(phase))};
}

}  // namespace

bool supports_real_fft(std::int64_t n) noexcept {
  if (n < 4 || n > kMaxFft || n % 2 != 0) return false;
  std::int64_t rest = n / 2;
  for (const int prime : {2, 3, 5})
    while (rest % prime == 0) rest /= prime;
  return rest == 1;
}

template <typename T>
void fill_twiddles(int n, bool inverse, Complex<T>* twiddles) noexcept {
  const int half = n / 2;
  const double sign = inverse ? 1 : -1;
  for (int k = 0; k < half; ++k) twiddles[k] = unit<T>(sign * (2 * kPi * k / half));
  for (int k = 0; k < half / 2; ++k)
    twiddles[half + k] = unit<T>(sign * (kPi * (static_cast<double>(k + 1) / half + 0.5)));
}

template <typename T>
void forward_real(int n, const Complex<T>* twiddles, const T* time, Complex<T>* spectrum, Complex<T>* work) noexcept {
  const int half = n / 2;
  Complex<T>* const packed = work;  // even samples as real parts, odd ones as imaginary parts
  Complex<T>* const transformed = work + half;
  for (int k = 0; k < half; ++k) packed[k] = {time[2 * k], time[2 * k + 1]};
  HalfTransform<T>{twiddles, false}.run(transformed, packed, half, 1);
  const Complex<T> first = divided(transformed[0], 2);
  spectrum[0] = {plus(first.re, first.im), T{0}};
  spectrum[half] = {minus(first.re, first.im), T{0}};
  using A = Arithmetic<T>;
  for (int k = 1; k <= half / 2; ++k) {
    const Complex<T> a = divided(transformed[k], 2);
    const Complex<T> b = divided(conjugate(transformed[half - k]), 2);
    const Complex<T> sum = plus(a, b);
    const Complex<T> turn = times(minus(a, b), twiddles[half + k - 1]);
    spectrum[k] = {A::halved(A::add(sum.re, turn.re)), A::halved(A::add(sum.im, turn.im))};
    spectrum[half - k] = {A::halved(A::subtract(sum.re, turn.re)), A::halved(A::subtract(turn.im, sum.im))};
  }
}

template <typename T>
void inverse_real(int n, const Complex<T>* twiddles, const Complex<T>* spectrum, T* time, Complex<T>* work) noexcept {
  const int half = n / 2;
  Complex<T>* const packed = work;
  Complex<T>* const transformed = work + half;
  packed[0] = divided(Complex<T>{plus(spectrum[0].re, spectrum[half].re), minus(spectrum[0].re, spectrum[half].re)}, 2);
  for (int k = 1; k <= half / 2; ++k) {
    const Complex<T> a = divided(spectrum[k], 2);
    const Complex<T> b = divided(conjugate(spectrum[half - k]), 2);
    const Complex<T> even = plus(a, b);
    const Complex<T> odd = times(minus(a, b), twiddles[half + k - 1]);
    packed[k] = plus(even, odd);
    packed[half - k] = conjugate(minus(even, odd));
  }
  HalfTransform<T>{twiddles, true}.run(transformed, packed, half, 1);
  for (int k = 0; k < half; ++k) {
    time[2 * k] = transformed[k].re;
    time[2 * k + 1] = transformed[k].im;
  }
}

template void fill_twiddles(int, bool, Complex<std::int16_t>*) noexcept;
template void fill_twiddles(int, bool, Complex<std::int32_t>*) noexcept;
template void fill_twiddles(int, bool, Complex<float>*) noexcept;
template void forward_real(int, const Complex<std::int16_t>*, const std::int16_t*, Complex<std::int16_t>*,
                           Complex<std::int16_t>*) noexcept;
template void forward_real(int, const Complex<std::int32_t>*, const std::int32_t*, Complex<std::int32_t>*,
                           Complex<std::int32_t>*) noexcept;
template void forward_real(int, const Complex<float>*, const float*, Complex<float>*, Complex<float>*) noexcept;
template void inverse_real(int, const Complex<std::int16_t>*, const Complex<std::int16_t>*, std::int16_t*,
                           Complex<std::int16_t>*) noexcept;
template void inverse_real(int, const Complex<std::int32_t>*, const Complex<std::int32_t>*, std::int32_t*,
                           Complex<std::int32_t>*) noexcept;
template void inverse_real(int, const Complex<float>*, const Complex<float>*, float*, Complex<float>*) noexcept;

}  // namespace bantam::signal
