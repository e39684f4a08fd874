// Polynomials through the values of a function, computed while compiling. Freestanding.
#pragma once

namespace bantam::ops {

/// Zeros of the Chebyshev polynomials of degree 3 to 6.
template <int kCount>
inline constexpr double kChebyshevNodes[kCount] = {};
template <>
inline constexpr double kChebyshevNodes<3>[3] = {-0.86602540378443865, 0, 0.86602540378443865};
template <>
inline constexpr double kChebyshevNodes<4>[4] = {-0.92387953251128676, -0.38268343236508977, 0.38268343236508977,
                                                 0.92387953251128676};
template <>
inline constexpr double kChebyshevNodes<5>[5] = {-0.95105651629515357, -0.58778525229247313, 0, 0.58778525229247313,
                                                 0.95105651629515357};
template <>
inline constexpr double kChebyshevNodes<6>[6] = {-0.96592582628906829, -0.70710678118654752, -0.25881904510252076,
                                                 0.25881904510252076,  0.70710678118654752,  0.96592582628906829};

/// The polynomial of degree kCount - 1 that meets f at the Chebyshev nodes of middle - reach to middle + reach: f(x) is
/// about the sum of c[i] (x - origin)^i.
template <int kCount, class F>
constexpr void interpolate_polynomial(F f, double middle, double reach, double origin, double (&c)[kCount]) noexcept {
  double at[kCount] = {};
  double differences[kCount] = {};
  for (int i = 0; i < kCount; ++i) {
    const double x = middle + kChebyshevNodes<kCount>[i] * reach;
    at[i] = x - origin;
    differences[i] = f(x);
  }
  // Newton's divided differences, then Horner's scheme of (x - origin - at[i]).
  for (int order = 1; order < kCount; ++order)
    for (int i = kCount - 1; i >= order; --i)
      differences[i] = (differences[i] - differences[i - 1]) / (at[i] - at[i - order]);
  for (double& power : c) power = 0;
  for (int i = kCount - 1; i >= 0; --i) {
    for (int power = kCount - 1; power > 0; --power) c[power] = c[power - 1] - at[i] * c[power];
    c[0] = differences[i] - at[i] * c[0];
  }
}

}  // namespace bantam::ops
