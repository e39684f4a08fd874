// The probability that a normally distributed number exceeds t by polynomials of t's pieces. Constants only, computed
// while compiling. Freestanding.
#pragma once

#include "ops/common/piecewise_polynomial.h"

namespace bantam::ops {

/// Piece k holds for the t that are nearest to k * kWidth; on it the probability is the sum of c[i][k] (t - k *
/// kWidth)^i. Errors are below 4e-8; relative to the probability below 5e-7 for t < 3, 4e-5 for t <= kLast.
struct NormalTailTable {
  static constexpr int kPieces = 32;
  static constexpr int kDegree = 4;
  static constexpr float kLast = 6.0F;  ///< belongs to the last one; the probability is 1e-9
  static constexpr float kWidth = kLast / (kPieces - 0.51F);

  alignas(64) float c[kDegree + 1][kPieces];
};

namespace detail {

/// e^-x for 0 <= x <= 20.
constexpr double negative_exponential(double x) noexcept {
  const double t = x / -64;
  double term = 1;
  double y = 1;
  for (int i = 1; i < 16; ++i) y += term *= t / i;
  for (int i = 0; i < 6; ++i) y *= y;
  return y;
}

/// For -1 <= t <= 6.2: 1/2 less the normal density times t + t^3 / 3 + t^5 / (3 * 5) + ... (Abramowitz and Stegun
/// 26.2.11).
constexpr double normal_tail(double t) noexcept {
  double term = t;
  double sum = t;
  for (int i = 3; i < 300; i += 2) sum += term *= t * t / i;
  return 0.5 - 0.39894228040143268 * negative_exponential(t * t / 2) * sum;
}

constexpr NormalTailTable make_normal_tail_table() noexcept {
  NormalTailTable table{};
  for (int k = 0; k < NormalTailTable::kPieces; ++k) {
    const double middle = k * static_cast<double>(NormalTailTable::kWidth);
    double c[NormalTailTable::kDegree + 1] = {};
    interpolate_polynomial(normal_tail, middle, static_cast<double>(NormalTailTable::kWidth) / 2, middle, c);
    for (int i = 0; i <= NormalTailTable::kDegree; ++i) table.c[i][k] = static_cast<float>(c[i]);
  }
  return table;
}

}  // namespace detail

inline constexpr NormalTailTable kNormalTailTable = detail::make_normal_tail_table();

}  // namespace bantam::ops
