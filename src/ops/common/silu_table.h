// x sigmoid(x) = max(x, 0) + s(|x|), s(a) = -a sigmoid(-a), by polynomials for s, for results of 8 bits. Constants
// only, computed while compiling. Freestanding.
#pragma once

#include "ops/common/piecewise_polynomial.h"

namespace bantam::ops {

/// Pieces of equal width: piece k holds for the a that are nearest to k * kWidth, the last one beyond, too.
struct EqualPieces {
  static constexpr int kPieces = 32;
  static constexpr double kWidth = 12.8 / kPieces;
  static constexpr auto kLast = static_cast<float>((kPieces - 0.51) * kWidth);  ///< belongs to the last one

  static constexpr double middle(int k) noexcept { return k * kWidth; }
  static constexpr double reach(int /*k*/) noexcept { return kWidth / 2; }
};

/// Pieces of 1, 2, 4 and 8: piece k holds for the a with 2^k <= a + 1 < 2^(k + 1).
struct DoublingPieces {
  static constexpr int kPieces = 4;
  static constexpr float kLast = 14.99F;  ///< belongs to the last one

  static constexpr double middle(int k) noexcept { return 1.5 * (1 << k) - 1; }
  static constexpr double reach(int k) noexcept { return 0.5 * (1 << k); }
};

/// Halves of those of DoublingPieces: piece k holds for the a + 1 whose exponent's last two bits and first bit behind
/// the point are k.
struct HalvedDoublingPieces {
  static constexpr int kPieces = 8;
  static constexpr float kLast = 14.99F;  ///< belongs to the last one

  static constexpr double middle(int k) noexcept { return (1.25 + 0.5 * (k & 1)) * first(k) - 1; }
  static constexpr double reach(int k) noexcept { return 0.25 * first(k); }

 private:
  /// The power of 2 that a float's biased exponent stands for: 127, whose last bits are 3, for 1.
  static constexpr int first(int k) noexcept { return 1 << (((k >> 1) + 1) & 3); }
};

/// Piece k of s is the sum of c[i][k] a^i. Beyond kLast s changes by less than kError. Absolute errors are below
/// kError.
template <class Pieces, int kHighest>
struct SiluTable : Pieces {
  static constexpr int kDegree = kHighest;
  static constexpr float kError = 1.1e-4F;

  alignas(64) float c[kDegree + 1][Pieces::kPieces];
};

namespace detail {

/// e^x for -20 <= x <= 20: a Taylor polynomial of x / 1024, squared ten times.
constexpr double exponential(double x) noexcept {
  const double t = x / 1024;
  double y = 1 + t * (1 + t / 2 * (1 + t / 3 * (1 + t / 4)));
  for (int i = 0; i < 10; ++i) y *= y;
  return y;
}

constexpr double silu_of_negative(double a) noexcept { return -a / (1 + exponential(a)); }

/// Polynomials through the values at the Chebyshev nodes of each piece.
template <class Table>
constexpr Table make_silu_table() noexcept {
  Table table{};
  for (int k = 0; k < Table::kPieces; ++k) {
    double c[Table::kDegree + 1] = {};
    interpolate_polynomial(silu_of_negative, Table::middle(k), Table::reach(k), 0, c);
    for (int i = 0; i <= Table::kDegree; ++i) table.c[i][k] = static_cast<float>(c[i]);
  }
  return table;
}

}  // namespace detail

template <class Table>
inline constexpr Table kSiluTable = detail::make_silu_table<Table>();

}  // namespace bantam::ops
